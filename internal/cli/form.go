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

// formOptions are the flag for the form. Until the next release its old name, which has another
// meaning in annotations, is accepted too.
type formOptions struct {
	name, old string
}

func (o *formOptions) bind(fs *pflag.FlagSet, byDefault, usage string) {
	fs.StringVar(&o.name, "form", byDefault, usage)
	fs.StringVar(&o.old, "strategy", "", usage)
	_ = fs.MarkDeprecated("strategy", "use --form; the next release removes it")
}

// choose returns the form. The new name wins, however each was set.
func (o *formOptions) choose(fs *pflag.FlagSet) string {
	if o.old != "" && !fs.Changed("form") {
		return o.old
	}
	return o.name
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
