package timeline

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// Origin identifies which revisions a workload had before an input was delivered: the
// number of the revision that was current then, its name, or the API server's time of the
// write that delivered it, depending on the workload's kind. It is stored as it is; empty
// means unknown.
type Origin string

// AfterNumber is the origin of an input delivered after the revision of that number.
func AfterNumber(number int64) Origin {
	if number <= 0 {
		return ""
	}
	return Origin(strconv.FormatInt(number, 10))
}

// AfterName is the origin of an input delivered after the revision of that name.
func AfterName(name string) Origin {
	return Origin(name)
}

// AfterTime is the origin of an input delivered by a write at that time.
func AfterTime(at time.Time) Origin {
	if at.IsZero() {
		return ""
	}
	return Origin(at.UTC().Format(time.RFC3339))
}

// By adds to an origin without a number which revision delivered the input. The workload
// may have had that revision before, and going back to it doesn't revert the input.
func (o Origin) By(giver string) Origin {
	if _, isNumber := o.number(); o == "" || giver == "" || isNumber {
		return o
	}
	before, _, _ := strings.Cut(string(o), byMark)
	return Origin(before + byMark + giver)
}

// IsTime reports whether only times show which revisions the workload had, and the revision
// that delivered the input isn't known.
func (o Origin) IsTime() bool {
	_, err := time.Parse(time.RFC3339, string(o))
	return err == nil
}

// byMark separates an origin from the name of the revision that delivered the input.
const byMark = "/"

func (o Origin) number() (int64, bool) {
	number, err := strconv.ParseInt(string(o), 10, 64)
	return number, err == nil
}

// Had reports whether the workload certainly had the revision, one of all, before the
// input was delivered, and another one delivered it. A ReplicaSet that is used again gets
// a new number and keeps the earlier ones. A ControllerRevision keeps its name and its
// creation time.
func (o Origin) Had(r Revision, all []Revision) bool {
	if o == "" {
		return false
	}
	if number, ok := o.number(); ok {
		numbers := r.numbers()
		return !slices.Contains(numbers, number+1) && slices.ContainsFunc(numbers, func(n int64) bool { return n > 0 && n <= number })
	}
	before, giver, _ := strings.Cut(string(o), byMark)
	if r.Name == giver {
		return false
	}
	if at, err := time.Parse(time.RFC3339, before); err == nil {
		return r.Created.Before(at)
	}
	if r.Name == before {
		return true
	}
	known := slices.IndexFunc(all, func(other Revision) bool { return other.Name == before })
	return known >= 0 && r.Created.Before(all[known].Created)
}

// IsUsedAgain reports whether new pods are created from a revision that the workload went
// back to. Only revisions with numbers show that: a ReplicaSet then gets a new one.
func IsUsedAgain(revisions []Revision) bool {
	return slices.ContainsFunc(revisions, func(r Revision) bool { return r.Current && len(r.Earlier) > 0 })
}

// Is reports whether the revision was the current one before the input was delivered.
func (o Origin) Is(r Revision) bool {
	if number, ok := o.number(); ok {
		return r.Number == number || slices.Contains(r.Earlier, number)
	}
	before, _, _ := strings.Cut(string(o), byMark)
	return r.Name == before
}

// Reverted reports whether an input was reverted, and to which revision: new pods are
// created from a revision that the workload had before the input was delivered, and whose
// mark differs from the current version's. A revision without a mark has an unknown
// version. Without evidence the input wasn't reverted.
func (o Origin) Reverted(id input.ID, shows input.Mark, revisions []Revision) (to string, back bool) {
	i := slices.IndexFunc(revisions, func(r Revision) bool { return r.Current })
	if i < 0 || !o.Had(revisions[i], revisions) {
		return "", false
	}
	return revisions[i].Name, shows == (input.Mark{}) || !revisions[i].Shown.Show(id, shows)
}

// numbers are all numbers that the revision had, the latest at the end.
func (r Revision) numbers() []int64 {
	return slices.Concat(r.Earlier, []int64{r.Number})
}

// FirstAfter is the first number of the revision after the given one, zero when it had none.
func (r Revision) FirstAfter(number int64) int64 {
	all := r.numbers()
	slices.Sort(all)
	i := slices.IndexFunc(all, func(n int64) bool { return n > number })
	if i < 0 {
		return 0
	}
	return all[i]
}

// Before is the origin of the inputs that the revision was created for.
func (r Revision) Before() Origin {
	if r.Number > 0 {
		return AfterNumber(r.Number - 1)
	}
	return AfterTime(r.Created)
}
