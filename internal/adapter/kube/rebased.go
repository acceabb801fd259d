package kube

// Rebased returns the workload as it was decided on, with the resource version of a later copy,
// so a patch can apply to that one. The decision holds if everything that a decision depends on
// is the same in both, even though another client has written the object since.
func (w *Workload) Rebased(later *Workload) (rebased *Workload, holds bool) {
	now := *w
	now.ResourceVersion, now.Target = later.ResourceVersion, later.Target
	// A JSON patch depends on it, and a Deployment's other annotations aren't kept.
	now.HasAnnotations, now.WrittenAt = later.HasAnnotations, later.WrittenAt
	return &now, w.SameAs(later) && w.SameProgress(later) && w.sameTemplateWriters(later) &&
		w.Replicas == later.Replicas && w.Owner == later.Owner && w.Target.UID == later.Target.UID
}

// sameTemplateWriters reports whether nobody has written the template since. A template that came
// and went, such as another installation's rollout that a user undid, would look the same.
func (w *Workload) sameTemplateWriters(later *Workload) bool {
	return w.RolledOutBy == later.RolledOutBy && w.TemplateBy == later.TemplateBy &&
		w.RolledOutAt.Equal(later.RolledOutAt) && w.TemplateAt.Equal(later.TemplateAt)
}
