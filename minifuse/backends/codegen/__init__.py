"""Code generation that backends share: expressions and loops as source text."""
