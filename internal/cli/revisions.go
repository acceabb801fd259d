package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/feature/revisions"
	"github.com/lockstep-dev/lockstep/internal/run"
)

// revisionsOptions are the controller's flags for objects whose names include their content.
type revisionsOptions struct {
	revisions.Options
	enabled bool
	// secrets are the namespaces whose Secrets are attached too.
	secrets []string
}

// everyNamespace means all followed namespaces.
const everyNamespace = "*"

func (o *revisionsOptions) bind(fs *pflag.FlagSet) {
	o.Options = revisions.DefaultOptions()
	fs.BoolVar(&o.enabled, "revisions", true, "attach ConfigMaps and Secrets labelled "+settings.Revisioned+"=true to the revisions that use them")
	fs.StringSliceVar(&o.secrets, "revisions-secret-namespaces", []string{everyNamespace}, "namespaces whose Secrets are attached too, separated by commas; * for all watched ones, empty for none")
	fs.DurationVar(&o.Grace, "revisions-grace", o.Grace, "age at which the controller reports such an object if no revision uses it")
}

// secretNamespaces are those of the flag; nil means all.
func (o *revisionsOptions) secretNamespaces() []string {
	if slices.Contains(o.secrets, everyNamespace) {
		return nil
	}
	return append([]string{}, o.secrets...)
}

// options converts the flags.
func (o *revisionsOptions) options() run.Revisions {
	return run.Revisions{Options: o.Options, Enabled: o.enabled, Secrets: o.secretNamespaces()}
}

// Validate lists everything that is wrong with the options.
func (o *revisionsOptions) Validate() error {
	wrong := []error{o.Options.Validate()}
	for _, ns := range o.secretNamespaces() {
		if problems := validation.IsDNS1123Label(ns); len(problems) > 0 {
			wrong = append(wrong, fmt.Errorf("--revisions-secret-namespaces: namespace %q: %s", ns, problems[0]))
		}
	}
	return errors.Join(wrong...)
}
