package ui

import (
	"html"
	"strings"
	"unicode"
)

// node is HTML. Only el and text make it, so every text in it is escaped and cut.
type node string

// attributes are those of an element, each as ` name="value"`. They are joined with +.
type attributes string

// longest is how many bytes of one text are shown: names, reasons and messages are shorter, and
// an annotation may have 256 KiB.
const longest = 2000

// el is an element with its children.
//
//go:noinline
func el(name string, with attributes, children ...node) node {
	var b strings.Builder
	b.WriteString("<" + name + string(with) + ">")
	for _, child := range children {
		b.WriteString(string(child))
	}
	b.WriteString("</" + name + ">")
	return node(b.String())
}

// void is an element that has no children.
func void(name string, with attributes) node { return node("<" + name + string(with) + ">") }

// text is a text of the cluster or of ours.
//
//go:noinline
func text(s string) node { return node(html.EscapeString(shown(s))) }

// attr is an attribute with any value.
//
//go:noinline
func attr(name, value string) attributes {
	return attributes(" " + name + `="` + html.EscapeString(shown(value)) + `"`)
}

// flag is an attribute without a value.
func flag(name string) attributes { return attributes(" " + name) }

// class is the most common attribute.
//
//go:noinline
func class(names string) attributes { return attr("class", names) }

// each makes one node of each item.
//
//go:noinline
func each[T any](items []T, render func(T) node) node {
	return repeat(len(items), func(i int) node { return render(items[i]) })
}

// repeat makes some nodes. Unlike each, it is compiled once.
func repeat(times int, render func(int) node) node {
	var b strings.Builder
	for i := range times {
		b.WriteString(string(render(i)))
	}
	return node(b.String())
}

// when is the node, or nothing.
//
//go:noinline
func when(so bool, n node) node {
	if so {
		return n
	}
	return ""
}

// together joins nodes.
//
//go:noinline
func together(all ...node) node {
	var b strings.Builder
	for _, n := range all {
		b.WriteString(string(n))
	}
	return node(b.String())
}

// shown is a text without what a reader would not see or what would change its order, cut to
// what a page can show.
func shown(s string) string {
	cut := ""
	if len(s) > longest {
		s, cut = s[:longest], "…"
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' { // joiners only change the shape of letters
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar))) + cut
}
