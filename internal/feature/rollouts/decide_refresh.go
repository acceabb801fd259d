package rollouts

import "github.com/lockstep-dev/lockstep/internal/core/input"

// byRefresh delivers a change without a restart: the kubelets update mounted files at once.
type byRefresh struct{ onPods }

// decide counts every input as delivered. Only a restart could deliver the inputs that a
// refresh doesn't reach, and the settings exclude restarts; Lockstep reports those inputs.
func (byRefresh) decide(s situation) Decision {
	d := s.draft.as(Refresh, input.NotRefreshable)
	if mounted := mounted(d.Due); len(mounted) > 0 {
		d.Reason, d.Message = input.Refreshed, changes(mounted)
	}
	return s.delivered(d)
}
