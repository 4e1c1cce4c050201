from docs.site.public_names import Entry


def example_of(entry: Entry) -> str:
    return ""
