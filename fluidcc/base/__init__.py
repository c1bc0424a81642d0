"""What every room uses: errors, arguments, units, files, progress bars, tables of text."""
