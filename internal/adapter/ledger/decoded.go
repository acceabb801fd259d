package ledger

import (
	"errors"

	"github.com/lockstep-dev/lockstep/internal/core/record"
)

// decodedAtMost limits the decoded entries of a shard, 1,024 in all. A decoded entry takes three
// times as much memory as its text, so 10,000 workloads are kept as text.
const decodedAtMost = 16

// decoded is an entry with the text it was decoded from. Callers share it and must not change
// it.
type decoded struct {
	text  string
	entry record.Entry
}

// entry returns the newest entry, written or not; false when there is none. The error is set
// when the entry cannot be read.
func (s *shard) entry(key string) (record.Entry, bool, error) {
	text, ok := s.get(key)
	if !ok {
		return record.Entry{}, false, nil
	}
	known, found := s.decoded[key]
	if found && known.text == text {
		return known.entry, true, nil
	}
	e, err := record.Decode(text)
	if err != nil {
		return record.Entry{}, true, err
	}
	for other := range s.decoded {
		if found || len(s.decoded) < decodedAtMost {
			break
		}
		delete(s.decoded, other)
	}
	s.decoded[key] = decoded{text, e}
	return e, true, nil
}

func isTooNew(err error) bool {
	format, is := errors.AsType[*record.FormatError](err)
	return is && format.IsTooNew()
}

func isTooOld(err error) bool {
	format, is := errors.AsType[*record.FormatError](err)
	return is && format.IsTooOld()
}
