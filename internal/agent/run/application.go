package run

import (
	"errors"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/agent/adapter/process"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync"
	"github.com/lockstep-dev/lockstep/internal/agent/feature/podsync/application"
)

// application creates the parts that reach the application, and the child if there is one.
// It reports every mistake in their specifications and has no side effects.
func (c Config) application(parent *process.Parent) (parts podsync.Parts, child *process.Child, err error) {
	settings := application.Settings{HTTP: c.http(), Timeout: c.App.CommandTimeout, Parent: parent}
	if len(c.Child.Args) > 0 {
		child = process.NewChild(parent, c.Child)
		settings.Child, parts.Child = child, child
	}
	var mistakes []error
	for _, spec := range c.App.Notify {
		notifier, err := application.NewNotifier(spec, settings)
		parts.Notifiers, mistakes = append(parts.Notifiers, notifier), append(mistakes, err)
	}
	if c.App.Confirm != "" {
		confirmer, err := application.NewConfirmer(c.App.Confirm, c.App.ConfirmTimeout, settings)
		parts.Confirmer, mistakes = confirmer, append(mistakes, err)
		if err == nil && len(c.App.Notify) == 0 && confirmer.Compares() {
			mistakes = append(mistakes, errors.New("--confirm compares with the state before the notification: add a --notify"))
		}
	}
	if c.App.Check != "" {
		settings.Timeout = c.App.CheckTimeout
		parts.Checker, err = application.NewChecker(c.App.Check, settings)
		parts.CheckName = c.App.Check
		mistakes = append(mistakes, err)
	}
	return parts, child, errors.Join(mistakes...)
}

// http applies the global request options to the first address only, so a credential reaches
// only the server it was configured for.
func (c Config) http() application.HTTP {
	h := application.HTTP{First: c.App.HTTP, Others: Default().App.HTTP}
	for _, spec := range append(slices.Clone(c.App.Notify), c.App.Confirm) {
		if address := application.Address(spec); address != "" {
			h.First.URL, h.OwnSocket = address, application.Socket(spec)
			break
		}
	}
	return h
}
