package images

import "github.com/lockstep-dev/lockstep/internal/core/input"

// Enforce is the rule without a record, as in kube-image-deployer: the template is the
// only state, and any image that differs from the requested digest is due, whichever
// writer set it. The image is written without its tag, and otherwise as in the annotation.
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
