package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	// MaxFailures is how many versions of an input the record lists with which workloads failed.
	MaxFailures = 4
	// MaxChange is the maximum length of an encoded change.
	MaxChange = 3000
	// maxFailedID is the length from which on a workload's ID is cut.
	maxFailedID = 72
	// maxWord is the maximum length of a version.
	maxWord = 20
)

// The words of a change in its written form: "77ab01c9de level:6 at:2026-11-15T03:04:05Z
// failed:Deployment.apps/shop/a". The version comes first, as "-" when it isn't known. Workloads that failed with
// another version follow that: "also:0b1c2d3e4f,2026-11-15T03:04:05Z,Deployment.apps/blog/b".
const (
	noVersion                                = "-"
	levelWord, atWord, sinceWord, failedWord = "level:", "at:", "since:", "failed:"
	alsoWord                                 = "also:"
	failedSeparator, cutMark                 = ",", "~"
	timeOfChange                             = time.RFC3339Nano
)

// Change is what the record keeps of an input that is stopped or damped, whichever workloads
// use it.
type Change struct {
	// Version is the one that began to be delivered last, as VersionOf returns it.
	Version string
	// At is when the version began to be delivered, and Level how often in a row that
	// happened without a longer pause.
	At    time.Time
	Level int
	// Failures are the versions with which workloads failed. Several can fail at the same time: copies of a
	// shared source differ, and workloads follow different tags of a repository.
	Failures []Failure
}

// Failure is a version with which workloads failed.
type Failure struct {
	Version string
	// On are these workloads, in the order in which they failed.
	On []string
	// Since is when the first of them failed.
	Since time.Time
}

// VersionOf is the version of a change on record. The keyed digest of a shared Secret isn't
// published, so a digest of it takes its place.
func VersionOf(c input.Change) string {
	if !c.IsShared() || c.ID.Kind != input.KindSecret || c.Version == "" {
		return c.Version
	}
	return digestText(c.ID.String() + " " + c.Version)
}

// Failure is what is on record of the workloads that failed with this version.
func (c Change) Failure(version input.Change) Failure {
	if i := c.index(VersionOf(version)); i >= 0 {
		return c.Failures[i]
	}
	return Failure{}
}

func (c Change) index(version string) int {
	return slices.IndexFunc(c.Failures, func(f Failure) bool { return f.Version == version })
}

// WithFailed adds a workload that failed with the version, once. Beyond MaxFailed it isn't
// added. Beyond MaxFailures, the version that failed first is forgotten.
func (c Change) WithFailed(version input.Change, id string, now time.Time) Change {
	failure := c.Failure(version)
	if failure.HasFailed(id) || len(failure.On) >= MaxFailed {
		return c
	}
	if len(failure.On) == 0 {
		failure.Version, failure.Since = VersionOf(version), now
	}
	failure.On = append(slices.Clip(failure.On), cutID(id))
	c.Failures = slices.Clone(c.Failures)
	if i := c.index(failure.Version); i >= 0 {
		c.Failures[i] = failure
	} else {
		c.Failures = append(c.Failures, failure)
	}
	if len(c.Failures) > MaxFailures {
		first := slices.MinFunc(c.Failures, func(a, b Failure) int { return a.Since.Compare(b.Since) })
		c = c.WithoutFailures(func(f Failure) bool { return f.Version == first.Version })
	}
	c.Version = cmp.Or(c.Version, failure.Version)
	return c
}

// WithoutFailures is the change without the failures that are over.
func (c Change) WithoutFailures(isOver func(Failure) bool) Change {
	c.Failures = slices.DeleteFunc(slices.Clone(c.Failures), isOver)
	return c
}

// Lists reports whether the record lists that a workload failed with this version, or has no room
// for one more.
func (c Change) Lists(version input.Change, id string) bool {
	failure := c.Failure(version)
	return failure.HasFailed(id) || len(failure.On) >= MaxFailed
}

// HasFailed reports whether a workload is among those that failed. A long ID is cut on record,
// so comparing it with On isn't enough.
func (f Failure) HasFailed(id string) bool {
	return slices.Contains(f.On, cutID(id))
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
	var others []string
	for _, f := range c.Failures {
		failed := strings.Join(f.On, failedSeparator)
		switch {
		case f.Version != c.Version:
			others = append(others, alsoWord+strings.Join([]string{f.Version, writtenTime(f.Since), failed}, failedSeparator))
		case f.Since.IsZero():
			words = append(words, failedWord+failed)
		default:
			words = append(words, sinceWord+writtenTime(f.Since), failedWord+failed)
		}
	}
	words = append(words, others...)
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
	first := Failure{Version: c.Version}
	for word := range strings.SplitSeq(rest, " ") {
		if err := c.read(word, &first); err != nil {
			return Change{}, fmt.Errorf("decode a change: %w", err)
		}
	}
	if len(first.On) > 0 && first.Version != "" {
		c.Failures = slices.Insert(c.Failures, 0, first)
	}
	if len(c.Failures) > MaxFailures {
		return Change{}, fmt.Errorf("decode a change: %d versions with failures", len(c.Failures))
	}
	return c, nil
}

// read reads one word. Since and failed are about the version of the change.
func (c *Change) read(word string, first *Failure) (err error) {
	name, value, _ := strings.Cut(word, ":")
	switch name + ":" {
	case levelWord:
		c.Level, err = strconv.Atoi(value)
	case atWord:
		c.At, err = readTime(value)
	case sinceWord:
		first.Since, err = readTime(value)
	case failedWord:
		first.On, err = readFailed(value)
	case alsoWord:
		also := Failure{}
		version, rest, _ := strings.Cut(value, failedSeparator)
		since, failed, _ := strings.Cut(rest, failedSeparator)
		if also.Since, err = readTime(since); err == nil {
			also.On, err = readFailed(failed)
		}
		if also.Version = version; version == "" || len(version) > maxWord || version == c.Version || c.index(version) >= 0 {
			err = errors.New("a version that isn't another one")
		}
		c.Failures = append(c.Failures, also)
	}
	return err
}

func readFailed(text string) ([]string, error) {
	failed := strings.Split(text, failedSeparator)
	if len(failed) > MaxFailed || slices.ContainsFunc(failed, func(id string) bool { return id == "" || len(id) > maxFailedID }) {
		return nil, fmt.Errorf("%d failed workloads, or one without a proper name", len(failed))
	}
	return failed, nil
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
