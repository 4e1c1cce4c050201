"""Write the pictures of the gallery: see the package."""

from pathlib import Path

from project.gallery.animation import hold
from project.gallery.front import draw_front

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "gallery"

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "front.svg").write_text(draw_front(), encoding="utf-8")
    (FOLDER / "front-still.svg").write_text(hold(draw_front()), encoding="utf-8")
