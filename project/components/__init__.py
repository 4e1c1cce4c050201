"""Components that run in the browser: HTML, CSS and JavaScript, and the Python that mounts them."""
