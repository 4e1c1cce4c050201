"""Quizzes on the pages of the course: questions whose numbers are drawn, and whose answers the library computes.

question    a question, and how a typed answer is read and compared
figures     lines of text for questions and explanations
quiz        draw the quiz of a task by a seed
session     ask on the terminal, print, or write JSON
quiz2_1     the questions on task 2.1; one such file for each task
"""
