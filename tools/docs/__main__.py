"""`make docs`: rewrite the generated parts of docs/; review the diff like code."""

from tools.docs.pages import DOCS, texts


def main() -> None:
    """Write the files that changed, and print their names."""
    for name, text in texts().items():
        path = DOCS / name
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"Wrote docs/{name}")


if __name__ == "__main__":
    main()
