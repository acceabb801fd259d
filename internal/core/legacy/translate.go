package legacy

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/internal/core/input"
	"github.com/lockstep-dev/lockstep/internal/core/settings"
)

// Translate writes a workload's annotations as Lockstep's own.
func (w Words) Translate(own map[string]string) settings.Translation {
	in := w.Intent(own, nil)
	t := settings.Translation{Annotations: map[string]string{}, Lost: map[string]string{}}
	if in.Mistakes.TooMany != "" {
		t.Lost[ConfigMapAnnotation] = in.Mistakes.TooMany
	}
	var elements []string
	for _, p := range in.Listed {
		if len(validation.IsDNS1123Subdomain(p.Name)) == 0 {
			elements = append(elements, input.ID(p).String())
			continue
		}
		key := ConfigMapAnnotation
		if p.Kind == input.KindSecret {
			key = SecretAnnotation
		}
		t.Lost[key] = strings.TrimPrefix(t.Lost[key]+", ", ", ") + strconv.Quote(settings.Shorten(p.Name)) + " isn't a name that an object can have"
	}
	if len(elements) > 0 {
		t.Annotations[settings.Reload] = strings.Join(slices.Compact(elements), ", ")
	}
	return t
}
