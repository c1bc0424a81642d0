"""Ready scenarios: files, and functions of the parameters of a paper's figures."""
