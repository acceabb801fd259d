package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/adapter/patcher"
)

// Forms of the versions in a pod template.
const (
	formAnnotation = "annotation"
	formEnv        = "env"
)

// bindForm adds the flag for the form. Until the next release its old name, which has another meaning
// in annotations, is accepted too.
func bindForm(fs *pflag.FlagSet, to *string, byDefault, usage string) {
	fs.StringVar(to, "form", byDefault, usage)
	fs.StringVar(to, "strategy", byDefault, usage)
	sameFlags(fs, "form", "strategy")
	_ = fs.MarkDeprecated("strategy", "use --form; the next release removes it")
}

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
