"""The parts of the pages that answer in the browser: HTML, CSS and JavaScript beside the Python that mounts them."""
