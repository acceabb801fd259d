package cli

import (
	"context"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/adapter/announce"
	"github.com/lockstep-dev/lockstep/internal/core/input"
)

// whyOptions is the flag for a user's reason, which stays on the object as an event.
type whyOptions struct{ reason string }

func (o *whyOptions) bind(fs *pflag.FlagSet) {
	fs.StringVar(&o.reason, "reason", "", "why you do this, for an event on the object; needs permission to create events")
}

// isGiven reports whether the user gave a reason.
func (o *whyOptions) isGiven() bool { return strings.TrimSpace(o.reason) != "" }

// tell writes the event. A command that did its work doesn't fail because of it.
func (o *whyOptions) tell(ctx context.Context, c client.Writer, about *corev1.ObjectReference, what input.Reason, env Environment) {
	switch {
	case !o.isGiven():
	case about.Namespace == "":
		o.lost(env, "Lockstep doesn't write events on namespaces")
	default:
		err := announce.Once(ctx, c, announce.Event{
			About: about, By: announce.CommandReporter, Reason: string(what), Action: "command", Note: strings.TrimSpace(o.reason),
		}, env.Now())
		if err != nil {
			o.lost(env, err.Error())
		}
	}
}

// lost says that no event has the reason, and why.
func (o *whyOptions) lost(env Environment, because string) {
	if o.isGiven() {
		_ = say(env.Stderr, "note: no event was written for your reason: %s", because)
	}
}
