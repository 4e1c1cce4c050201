"""The pictures of the gallery and of the front page of the documentation: `python -m project.gallery` writes them."""
