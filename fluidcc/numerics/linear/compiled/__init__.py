"""What is compiled of the linear analysis: elimination of pencils, eigenloci, margins. One
folder, one stamp.
"""
