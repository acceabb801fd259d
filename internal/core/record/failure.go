package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

const (
	// MaxFailed is how many workloads the record lists that failed with a version.
	MaxFailed = 8
	// MaxFailure is the maximum length of an encoded failure.
	MaxFailure = 800
	// maxFailedID is the length from which on a workload's ID is cut.
	maxFailedID = 72
)

// The words of a failure in its written form: "since:2026-11-15T03:04:05Z failed:Deployment.apps/shop/a".
const (
	sinceWord, failedWord    = "since:", "failed:"
	failedSeparator, cutMark = ",", "~"
	timeOnRecord             = time.RFC3339Nano
)

// Failure is what the record keeps of a version with which workloads failed, whichever workloads use it.
type Failure struct {
	// On are these workloads, in the order in which they failed.
	On []string
	// Since is when the first of them failed.
	Since time.Time
}

// Published is a change as record and annotations name it. The keyed digest of a shared Secret isn't
// published, so a digest of it takes its place.
func Published(c input.Change) input.Change {
	if c.IsHidden() && c.Version != "" {
		c.Version = digestText(c.ID.String() + " " + c.Version)
	}
	return c
}

// With adds a workload that failed, once. Beyond MaxFailed it isn't added.
func (f Failure) With(id string, now time.Time) (next Failure, added bool) {
	if f.HasFailed(id) || len(f.On) >= MaxFailed {
		return f, false
	}
	if len(f.On) == 0 {
		f.Since = now
	}
	f.On = append(slices.Clip(f.On), cutID(id))
	return f, true
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

// Encode writes the failure as text of at most MaxFailure bytes.
func (f Failure) Encode() string {
	return sinceWord + writtenTime(f.Since) + " " + failedWord + strings.Join(f.On, failedSeparator)
}

func writtenTime(at time.Time) string {
	return at.UTC().Truncate(time.Millisecond).Format(timeOnRecord)
}

// readTime reads a time whose year can be written again in every time zone.
func readTime(text string) (time.Time, error) {
	at, err := time.Parse(timeOnRecord, text)
	if year := at.UTC().Year(); err == nil && (year < 1 || year > 9999) {
		err = fmt.Errorf("year %d", year)
	}
	return at.UTC(), err
}

// DecodeFailure parses Encode's output. It skips words that it doesn't know.
func DecodeFailure(text string) (f Failure, err error) {
	if len(text) > MaxFailure {
		return Failure{}, fmt.Errorf("decode a failure of %d bytes: not readable", len(text))
	}
	for word := range strings.SplitSeq(text, " ") {
		if since, ok := strings.CutPrefix(word, sinceWord); ok && err == nil {
			f.Since, err = readTime(since)
		}
		if failed, ok := strings.CutPrefix(word, failedWord); ok && err == nil {
			f.On, err = readFailed(failed)
		}
	}
	if err == nil && len(f.On) == 0 {
		err = errors.New("no workload failed")
	}
	if err != nil {
		return Failure{}, fmt.Errorf("decode a failure: %w", err)
	}
	return f, nil
}

func readFailed(text string) ([]string, error) {
	failed := strings.Split(text, failedSeparator)
	if len(failed) > MaxFailed || slices.ContainsFunc(failed, func(id string) bool { return id == "" || len(id) > maxFailedID }) {
		return nil, fmt.Errorf("%d failed workloads, or one without a proper name", len(failed))
	}
	return failed, nil
}
