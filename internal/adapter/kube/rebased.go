package kube

// Rebased returns the workload as it was decided on, with the resource version of a later copy,
// so a patch can apply to that one. The decision holds if everything that a decision depends on
// is the same in both, even though another client has written the object since.
func (w *Workload) Rebased(later *Workload) (rebased *Workload, holds bool) {
	now, status := *w, later.Status
	now.ResourceVersion, now.Target = later.ResourceVersion, later.Target
	// A JSON patch depends on it, and a Deployment's other annotations aren't kept.
	now.HasAnnotations, now.WrittenAt = later.HasAnnotations, later.WrittenAt
	// Its controller still has to see the other client's write. It has acted on the template.
	status.Observed = w.Status.Observed
	return &now, w.SameAs(later) && w.Status == status && w.Revision == later.Revision && w.keptTemplate(later) &&
		w.Replicas == later.Replicas && w.Owner == later.Owner && w.Target.UID == later.Target.UID
}

// keptTemplate reports whether the template, which is the same in both copies, was the same in
// between. One that came and went, such as a rollout of another installation that a user undid,
// changed the generation. It also got a revision number, or left another time of a write.
func (w *Workload) keptTemplate(later *Workload) bool {
	if w.RolledOutBy != later.RolledOutBy || !w.RolledOutAt.Equal(later.RolledOutAt) {
		return false
	}
	return w.Target.Generation == later.Target.Generation || w.Revision > 0 ||
		w.TemplateBy == later.TemplateBy && w.TemplateAt.Equal(later.TemplateAt)
}
