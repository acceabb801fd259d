package httpcall

import (
	"fmt"
	"strconv"
	"strings"
)

// Codes are ranges of accepted HTTP status codes.
type Codes []CodeRange

// CodeRange is one range, both ends included.
type CodeRange struct{ First, Last int }

// ParseCodes parses a list such as "200-299,304".
func ParseCodes(s string) (Codes, error) {
	var codes Codes
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || a < 100 || b > 599 || a > b {
			return nil, fmt.Errorf("HTTP codes %q: want a list such as 200-299,304", s)
		}
		codes = append(codes, CodeRange{First: a, Last: b})
	}
	return codes, nil
}

// String returns the form that ParseCodes parses.
func (c Codes) String() string {
	var parts []string
	for _, r := range c {
		part := strconv.Itoa(r.First)
		if r.Last != r.First {
			part += "-" + strconv.Itoa(r.Last)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ",")
}

// Accept reports whether a code is in one of the ranges. Without ranges it accepts 2xx.
func (c Codes) Accept(code int) bool {
	if len(c) == 0 {
		return code >= 200 && code <= 299
	}
	for _, r := range c {
		if code >= r.First && code <= r.Last {
			return true
		}
	}
	return false
}
