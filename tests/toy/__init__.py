"""A kind of somebody else, complete and small: a Troupe keeps some pods of one image, and changes the image in place.

`docs/your-own-kind.md` builds it step by step. Imports between its modules are relative, so that the same files are a
package of any name.
"""
