package images

import "github.com/lockstep-dev/lockstep/internal/core/input"

// Enforce is the rule where nothing is remembered, as in kube-image-deployer: the template
// is the only state, and whatever differs from the digest that the annotation stands for
// is due, whoever wrote it. The image is written without its tag, as in the annotation
// otherwise.
func Enforce(o Observation) Verdict {
	to := Pin{Digest: o.Found.Digest}
	switch {
	case o.Found == (Pin{}):
		return Verdict{Standing: input.Settled, Reason: input.Unresolved}
	case o.Template.Image == pinnedImage(o.Request.Image.Repository, to):
		return Verdict{Standing: input.Settled, Reason: input.InStep, To: to}
	}
	return Verdict{Standing: input.Due, Reason: input.Changed, To: to}
}
