# Packages: install rules of the documents, CPack.
