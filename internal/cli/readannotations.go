package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/commandline"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/core/stakater"
	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
)

// toolStakater is Stakater Reloader in flags.
const toolStakater = "stakater"

// readOptions select other tools whose annotations are read besides Lockstep's.
type readOptions struct {
	tools []string
}

func readableTools() []string { return []string{kubeimagedeployer.DefaultKey, toolStakater} }

func (o *readOptions) bind(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.tools, "read-annotations", nil, "other tools whose annotations Lockstep reads too, separated by commas: "+
		kubeimagedeployer.DefaultKey+" for images (and its label), "+toolStakater+" for ConfigMaps and Secrets")
}

func (o *readOptions) reads(tool string) bool { return slices.Contains(o.tools, tool) }

// words is our vocabulary with those of the tools. Image requests without a platform of their own
// are for the default one, empty for the index.
func (o *readOptions) words(defaults settings.Defaults) (settings.Native, error) {
	native := settings.Native{Defaults: defaults}
	for _, tool := range o.tools {
		if !slices.Contains(readableTools(), tool) {
			return settings.Native{}, fmt.Errorf("--read-annotations %q: unknown tool; want some of %s%s",
				tool, strings.Join(readableTools(), " and "), commandline.Hint(tool, "", readableTools()))
		}
	}
	if o.reads(kubeimagedeployer.DefaultKey) {
		native.Others = []settings.ImageWords{kubeimagedeployer.Words{Key: kubeimagedeployer.DefaultKey, Platform: defaults.Platform}}
	}
	if o.reads(toolStakater) {
		native.Reads = []settings.ReloadWords{stakaterWords(defaults.Auto)}
	}
	return native, nil
}

// stakaterWords are the annotations of Stakater Reloader, under their usual keys.
func stakaterWords(autoAll bool) stakater.Translator {
	return stakater.Translator{Words: stakater.Words{Keys: stakater.DefaultKeys(), AutoAll: autoAll}}
}
