package images

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Pin is a tag and the its digest.
type Pin struct {
	Tag, Digest string
}

// Memo is what is remembered about a container's image besides the delivered digest.
type Memo struct {
	// Request is a digest of the annotations to which Again, Contested and Accepted
	// apply.
	Request string
	// Again is when Lockstep pinned the image after another writer had restored it, to the
	// second.
	Again []time.Time
	// Contested is true since another writer has restored it too often.
	Contested bool
	// Accepted is true when the template stays as it is without the digest: a user
	// released it, or it was only observed.
	Accepted bool
	// Healthy is the image with which the workload was last healthy.
	Healthy Pin
	// Bad are the beginnings of digests whose rollout failed, the last one at the end.
	Bad []string
}

// mostBad bounds the list of digests whose rollout failed: older ones don't return.
const mostBad = 8

// badDigits is how many digits distinguish digests.
const badDigits = 20

// The words of a memo in its written form: "request=3fa9c1d2;ok=1.4@77ab…;bad=…,…".
const (
	requestWord, againWord, healthyWord, badWord = "request", "again", "ok", "bad"
	contestedWord, acceptedWord                  = "contested", "accepted"
)

// ParseMemo parses String's output. It skips what it can't parse.
func ParseMemo(text string) Memo {
	var m Memo
	for element := range strings.SplitSeq(text, ";") {
		word, value, _ := strings.Cut(element, "=")
		switch word {
		case requestWord:
			m.Request = value
		case againWord:
			for second := range strings.SplitSeq(value, ",") {
				if n, err := strconv.ParseInt(second, 10, 64); err == nil {
					m.Again = append(m.Again, time.Unix(n, 0).UTC())
				}
			}
		case contestedWord:
			m.Contested = true
		case acceptedWord:
			m.Accepted = true
		case healthyWord:
			if tag, digits, found := strings.Cut(value, "@"); found {
				m.Healthy = Pin{Tag: tag, Digest: algorithm + digits}
			}
		case badWord:
			m.Bad = strings.Split(value, ",")
		}
	}
	return m
}

// String is the written form. It contains no spaces, because tags and digests don't.
func (m Memo) String() string {
	var words []string
	if m.Request != "" {
		words = append(words, requestWord+"="+m.Request)
	}
	if len(m.Again) > 0 {
		seconds := make([]string, len(m.Again))
		for i, at := range m.Again {
			seconds[i] = strconv.FormatInt(at.Unix(), 10)
		}
		words = append(words, againWord+"="+strings.Join(seconds, ","))
	}
	if m.Contested {
		words = append(words, contestedWord)
	}
	if m.Accepted {
		words = append(words, acceptedWord)
	}
	if m.Healthy != (Pin{}) {
		words = append(words, healthyWord+"="+m.Healthy.Tag+"@"+strings.TrimPrefix(m.Healthy.Digest, algorithm))
	}
	if len(m.Bad) > 0 {
		words = append(words, badWord+"="+strings.Join(m.Bad, ","))
	}
	return strings.Join(words, ";")
}

// algorithm begins every digest.
const algorithm = "sha256:"

func badName(digest string) string {
	digits := strings.TrimPrefix(digest, algorithm)
	return digits[:min(badDigits, len(digits))]
}

// isBad reports whether the rollout of a digest failed.
func (m Memo) isBad(digest string) bool {
	return slices.Contains(m.Bad, badName(digest))
}

// withBad records that the rollout of a digest failed.
func (m Memo) withBad(digest string) Memo {
	if m.isBad(digest) {
		return m
	}
	m.Bad = append(slices.Clone(m.Bad), badName(digest))
	m.Bad = m.Bad[max(0, len(m.Bad)-mostBad):]
	return m
}

// renewed forgets the notes about the digest on record, which another one replaces.
func (m Memo) renewed() Memo {
	m.Again, m.Contested, m.Accepted = nil, false, false
	return m
}

// requestSum names a request for an image.
func requestSum(parts ...string) string {
	const enough = 4
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:enough])
}
