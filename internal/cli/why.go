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
	fs.StringVar(&o.reason, "reason", "", "why you do this, for an event on the object; needs the permission to create events")
}

// tell writes the event. A command that did its work doesn't fail because of it.
func (o *whyOptions) tell(ctx context.Context, c client.Writer, about *corev1.ObjectReference, what input.Reason, env Environment) {
	reason := strings.TrimSpace(o.reason)
	if reason == "" || about.Namespace == "" {
		return
	}
	err := announce.Once(ctx, c, announce.Event{
		About: about, By: personalManager, Reason: string(what), Action: "command", Note: "by hand: " + reason,
	}, env.Now())
	if err != nil {
		_ = say(env.Stderr, "note: the reason isn't kept: %v", err)
	}
}
