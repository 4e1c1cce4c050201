"""Tests of quizzes, and their answers computed a second time."""
