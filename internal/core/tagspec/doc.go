// Package tagspec parses the name of the image that a container should run: a
// repository, and which of its tags.
//
// A spec is one of four forms, distinguished by its characters alone:
//
//	1.34.2            a tag, which is always that one
//	1.34.*            a glob: each * stands for digits, compared as numbers
//	^1.4, >=1 <3      a range of semantic versions
//	/v(?P<n>\d+)/     a regular expression; its named groups are compared
//
// A tag contains only letters, digits, "_", "." and "-", so it can't be mistaken for
// a range.
package tagspec
