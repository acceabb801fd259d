package ask

import (
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/adapter/access"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// The states of the controller.
const (
	Running = "running"
	Down    = "down"
	Unknown = "not known"
)

// Controller is the state of the controller itself.
type Controller struct {
	// State is "running", "down" or "not known".
	State string `json:"state"`
	// Since is the time of the leader's last lease renewal, omitted unless the controller is down.
	Since *time.Time `json:"since,omitempty"`
	// Version is the version of the controller that last wrote the record.
	Version string `json:"version,omitempty"`
	// Note is an explanation of the state.
	Note string `json:"note,omitempty"`
	// NoneFound is true when there is no trace of a controller: it may be in another namespace.
	NoneFound bool `json:"-"`
}

// Heard is what was read from the controller's own objects.
type Heard struct {
	Leader access.Leader
	// Led is true when a lease was found, and LeaseProblem is why it could not be read.
	Led          bool
	LeaseProblem error
	// Recorded is true when a record was found, and RecordProblem is why it could not be
	// read.
	Recorded      bool
	RecordProblem error
	// Version is the controller's, Program this program's.
	Version, Program string
	// WrittenAt is when the record was last written, zero when that is not known.
	WrittenAt time.Time
	// Serves is what the controller follows according to its flags.
	Serves Serves
	// Stop is what an operator stopped, StoppedAt when that was last written, and StopProblem why
	// it could not be read.
	Stop        settings.Stop
	StoppedAt   time.Time
	StopProblem error
	// Own are the objects that were read.
	Own Own
}

// IsEmpty reports whether there is no trace of a controller.
func (h *Heard) IsEmpty() bool {
	return !h.Led && !h.Recorded && h.LeaseProblem == nil && h.RecordProblem == nil
}

// unread lists what could not be read: the record, with what stands for it, and the stops.
func (h *Heard) unread(record, instead string) []string {
	var notes []string
	if h.RecordProblem != nil {
		notes = append(notes, record+" is "+NotVisible+instead+": "+h.RecordProblem.Error())
	}
	if h.StopProblem != nil {
		notes = append(notes, "the list of stopped changes is "+NotVisible+": "+h.StopProblem.Error())
	}
	return notes
}

// ControllerOf returns the state of the controller.
func ControllerOf(h *Heard, now time.Time) Controller {
	c := Controller{State: Unknown, Version: h.Version, NoneFound: h.IsEmpty()}
	switch {
	case h.LeaseProblem != nil:
		c.Note = "the controller's lease is " + NotVisible + ": " + h.LeaseProblem.Error()
	case h.IsEmpty():
		c.Note = "no controller has run in namespace " + h.Own.Namespace
	case !h.Led:
		c.Note = fmt.Sprintf("there is no lease in namespace %s (a controller without leader election doesn't write one), so it isn't known whether a controller runs", h.Own.Namespace)
	case h.Leader.Leads(now):
		c.State = Running
	case h.WrittenAt.After(h.Leader.Expires):
		c.Note = "the record is newer than the lease (a controller without leader election doesn't renew it), so it isn't known whether a controller runs"
	default:
		c.State, c.Since = Down, known(h.Leader.Renewed)
		c.Note = "the states are its last decisions"
	}
	if h.Version != "" && h.Program != "" && h.Version != h.Program {
		c.Note = join(c.Note, fmt.Sprintf("the controller is version %s, and this program is %s", h.Version, h.Program))
	}
	return c
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
