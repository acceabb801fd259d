package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

const (
	// MaxFailed is how many workloads the record lists that failed with a version.
	MaxFailed = 8
	// MaxChange is the maximum length of an encoded change.
	MaxChange = 700
	// maxFailedID is the length from which on a workload's ID is cut.
	maxFailedID = 72
	// maxWord is the maximum length of a version.
	maxWord = 20
)

// The words of a change in its written form: "77ab01c9de level:6 at:2026-11-15T03:04:05Z
// failed:Deployment.apps/shop/a". The version comes first, as "-" when it isn't known.
const (
	noVersion                                = "-"
	levelWord, atWord, sinceWord, failedWord = "level:", "at:", "since:", "failed:"
	failedSeparator, cutMark                 = ",", "~"
	timeOfChange                             = time.RFC3339Nano
)

// Change is what the record keeps of an input that is stopped or damped, whichever workloads
// use it.
type Change struct {
	// Version is the one that began to be delivered last, as VersionOf returns it.
	Version string
	// Failed are the workloads that failed with the version, in the order in which they did.
	Failed []string
	// Since is when the first of them failed.
	Since time.Time
	// At is when the version began to be delivered, and Level how often in a row that
	// happened without a longer pause.
	At    time.Time
	Level int
}

// VersionOf is the version of a change on record. The keyed digest of a shared Secret isn't
// published, so a digest of it takes its place.
func VersionOf(c input.Change) string {
	if !c.IsShared() || c.ID.Kind != input.KindSecret || c.Version == "" {
		return c.Version
	}
	return digestText(c.ID.String() + " " + c.Version)
}

// Stops reports whether it is this version with which workloads failed.
func (c Change) Stops(version input.Change) bool {
	return len(c.Failed) > 0 && c.Version == VersionOf(version)
}

// WithFailed adds a workload that failed with the version, once. Beyond MaxFailed it isn't
// added.
func (c Change) WithFailed(id string, now time.Time) Change {
	if c.HasFailed(id) || len(c.Failed) >= MaxFailed {
		return c
	}
	if len(c.Failed) == 0 {
		c.Since = now
	}
	c.Failed = append(slices.Clip(c.Failed), cutID(id))
	return c
}

// Lists reports whether the record lists that a workload failed with this version, or has no room
// for one more.
func (c Change) Lists(version input.Change, id string) bool {
	return c.Stops(version) && (c.HasFailed(id) || len(c.Failed) >= MaxFailed)
}

// HasFailed reports whether a workload is among those that failed. A long ID is cut on record,
// so comparing it with Failed isn't enough.
func (c Change) HasFailed(id string) bool {
	return slices.Contains(c.Failed, cutID(id))
}

// cutID is a workload's ID, cut to a length that fits on record. A digest distinguishes it from
// others that begin in the same way.
func cutID(id string) string {
	if len(id) <= maxFailedID {
		return id
	}
	sum := digestText(id)
	return id[:maxFailedID-len(cutMark)-len(sum)] + cutMark + sum
}

func digestText(text string) string {
	const enough = 5
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:enough])
}

// Equal reports whether both are written in the same way.
func (c Change) Equal(other Change) bool { return c.Encode() == other.Encode() }

// Encode writes the change as text of at most MaxChange bytes.
func (c Change) Encode() string {
	words := []string{c.Version}
	if c.Version == "" {
		words[0] = noVersion
	}
	if c.Level != 0 {
		words = append(words, levelWord+strconv.Itoa(c.Level))
	}
	if !c.At.IsZero() {
		words = append(words, atWord+writtenTime(c.At))
	}
	if !c.Since.IsZero() {
		words = append(words, sinceWord+writtenTime(c.Since))
	}
	if len(c.Failed) > 0 {
		words = append(words, failedWord+strings.Join(c.Failed, failedSeparator))
	}
	return strings.Join(words, " ")
}

func writtenTime(at time.Time) string {
	return at.UTC().Truncate(time.Millisecond).Format(timeOfChange)
}

// readTime reads a time whose year can be written again in every time zone.
func readTime(text string) (time.Time, error) {
	at, err := time.Parse(timeOfChange, text)
	if year := at.UTC().Year(); err == nil && (year < 1 || year > 9999) {
		err = fmt.Errorf("year %d", year)
	}
	return at.UTC(), err
}

// DecodeChange parses Encode's output. It skips words that it doesn't know.
func DecodeChange(text string) (Change, error) {
	version, rest, _ := strings.Cut(text, " ")
	if len(text) > MaxChange || version == "" || len(version) > maxWord {
		return Change{}, fmt.Errorf("decode a change of %d bytes: not readable", len(text))
	}
	c := Change{Version: version}
	if version == noVersion {
		c.Version = ""
	}
	for word := range strings.SplitSeq(rest, " ") {
		if err := c.read(word); err != nil {
			return Change{}, fmt.Errorf("decode a change: %w", err)
		}
	}
	return c, nil
}

// read reads one word.
func (c *Change) read(word string) (err error) {
	name, value, _ := strings.Cut(word, ":")
	switch name + ":" {
	case levelWord:
		c.Level, err = strconv.Atoi(value)
	case atWord:
		c.At, err = readTime(value)
	case sinceWord:
		c.Since, err = readTime(value)
	case failedWord:
		c.Failed = strings.Split(value, failedSeparator)
		if len(c.Failed) > MaxFailed || slices.ContainsFunc(c.Failed, func(id string) bool { return id == "" || len(id) > maxFailedID }) {
			err = fmt.Errorf("%d failed workloads, or one without a proper name", len(c.Failed))
		}
	}
	return err
}

// UsesImage reports whether the workload has this version of an image, or waits for it.
func (e Entry) UsesImage(version string) bool {
	for id, given := range e.Inputs {
		if id.Kind == input.KindImage && (given.Version.Short() == version || given.Due != "" && given.Due == version) {
			return true
		}
	}
	return false
}
