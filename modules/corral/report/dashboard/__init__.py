"""The documents of the page of `corral dashboard`, and the page's own files. Pure: answers in, documents out."""
