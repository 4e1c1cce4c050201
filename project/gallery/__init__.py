"""The gallery of the documentation: `python -m project.gallery` writes docs/gallery.md and docs/images/gallery/*.svg.

`python -m project.gallery matmul ring` makes the pictures of some items only. It needs Chromium, except for `front`, the
picture of the front page.

    items       the views of the app, with their addresses and texts
    capture     saves steps of a view
    frames      joins the steps to one picture, in which they follow one another
    animation   colors and motion
    front       the picture of the front page
    page        the text of the page
"""
