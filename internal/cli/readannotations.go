package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/core/settings"
	"github.com/lockstep-dev/lockstep/internal/dropin/kubeimagedeployer"
)

// readOptions select other tools whose annotations are read besides Lockstep's.
type readOptions struct {
	tools []string
}

func (o *readOptions) bind(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.tools, "read-annotations", nil, "other tools whose label and annotations ask for images as well, separated by commas: "+kubeimagedeployer.DefaultKey)
}

// words are the vocabularies of those tools. Requests without a platform of their own are for the
// default one, empty for the index.
func (o *readOptions) words(platform string) ([]settings.ImageWords, error) {
	var all []settings.ImageWords
	for i, tool := range o.tools {
		if slices.Contains(o.tools[:i], tool) {
			continue
		}
		if tool != kubeimagedeployer.DefaultKey {
			return nil, fmt.Errorf("--read-annotations %q: the annotations of no such tool are read; known is %s", tool, kubeimagedeployer.DefaultKey)
		}
		all = append(all, kubeimagedeployer.Words{Key: kubeimagedeployer.DefaultKey, Platform: platform})
	}
	return all, nil
}
