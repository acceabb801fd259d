package tagspec

import (
	"cmp"
	"strings"
)

// texts are compared one after the other, each in natural order.
type texts []string

func (t texts) compare(other rank) int {
	o, _ := other.(texts)
	for i := range min(len(t), len(o)) {
		if order := natural(t[i], o[i]); order != 0 {
			return order
		}
	}
	return 0
}

// natural compares two texts in natural order: digits as numbers of any length,
// everything else by its bytes. "2024.9" is before "2024.10", "rc9" before "rc10".
func natural(a, b string) int {
	for a != "" && b != "" {
		if !isDigit(a[0]) || !isDigit(b[0]) {
			if order := cmp.Compare(a[0], b[0]); order != 0 {
				return order
			}
			a, b = a[1:], b[1:]
			continue
		}
		numberA, restA := leadingDigits(a)
		numberB, restB := leadingDigits(b)
		if order := numeric(numberA, numberB); order != 0 {
			return order
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// numeric compares digits as a number, however many there are.
func numeric(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if order := cmp.Compare(len(a), len(b)); order != 0 {
		return order
	}
	return strings.Compare(a, b)
}

func leadingDigits(text string) (digits, rest string) {
	end := 0
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	return text[:end], text[end:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
