package rollouts

import (
	"github.com/lockstep-dev/lockstep/internal/core/record"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Hold describes what holds the workload as a whole, empty when nothing does.
func (in Observation) Hold() string {
	switch hold := in.Template.Hold; {
	case in.Intent.Held:
		return "held by annotation " + settings.Hold + quoted(in.Intent.HeldBy)
	case hold.On:
		return "held" + quoted(hold.By) + ", although an undo removed the annotation " + settings.Hold + "; run lockstep release to end it"
	case in.Intent.NamespaceHeld:
		return "held by annotation " + settings.Hold + " on its namespace" + quoted(in.Intent.NamespaceHeldBy)
	}
	return ""
}

// undoneHold is a hold on record that counts without its annotation. A new hold
// annotation replaces it.
func (in Observation) undoneHold() record.Hold {
	if !in.Entry.Hold.Undone || in.Intent.Held {
		return record.Hold{}
	}
	return in.Entry.Hold
}

// lostHoldTo reports whether a hold's annotation disappeared together with the template on
// record: "kubectl rollout undo" restores a Deployment's annotations from the earlier
// revision. A user who only removes the annotation ends the hold.
func (in Observation) lostHoldTo(template record.Template) bool {
	return in.Entry.Hold.On && !in.Entry.Hold.Undone && !in.Intent.Held && in.Entry.Template.IsReplacedBy(template)
}

// holdOnRecord is the hold to be put on record: a later undo may remove its annotation,
// even while the controller is down.
func (in Observation) holdOnRecord() record.Hold {
	if in.Intent.Held {
		return record.NewHold(settings.Shorten(in.Intent.HeldBy))
	}
	return in.Template.Hold
}

// holdBesideMistake is the hold to be put on record while a user has to correct something. It
// doesn't depend on the mistake. Whether an undo removed the annotation is judged once the
// workload's controller has acted.
func (in Observation) holdBesideMistake() record.Hold {
	if in.History.NotActed && !in.Intent.Held {
		return in.Entry.Hold
	}
	return in.holdOnRecord()
}
