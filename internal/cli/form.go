package cli

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
)

// Forms of the versions in a pod template.
const (
	formAnnotation = "annotation"
	formEnv        = "env"
)

func validForm(name string) error {
	if name != formAnnotation && name != formEnv {
		return fmt.Errorf("--form %q: want %s or %s", name, formAnnotation, formEnv)
	}
	return nil
}

// templateForm is how versions are written into a template; an annotation by default.
func templateForm(name string) patcher.Form {
	if name == formEnv {
		return patcher.AsVariable
	}
	return patcher.AsAnnotation
}
