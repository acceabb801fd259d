package reloader_test

import (
	"maps"
	"testing"
)

// TestDefaults plays everything that needs no flags.
func TestDefaults(t *testing.T) {
	t.Parallel()
	scenes := map[string]scene{
		"TemplateKinds": templateKinds, "CronJob": cronJob, "InstantiateIsManual": instantiateIsManual, "Job": jobIsReplaced,
		"JobsStay": jobsStay, "Forbids": forbids, "JobIsNotLost": jobIsNotLost, "ManualSelector": manualSelector,
		"Vectors": vectors, "Containers": containers(false), "ContainersOfSecrets": containers(true),
		"BackAndForth": backAndForth, "Pause": pause, "Refused": refusedWorkload, "Mistakes": mistakes, "NoClasses": classesAreOptional,
	}
	maps.Copy(scenes, wishes(false))
	s := newSite(t, values{})
	s.installDriver(t)
	s.play(t, scenes)
}

// TestAnnotationStrategy plays what is different under that strategy.
func TestAnnotationStrategy(t *testing.T) {
	t.Parallel()
	newSite(t, values{}).play(t, map[string]scene{
		"OneSlot": annotationStrategy, "NoCreateOrDelete": noCreateOrDelete, "Refused": refusedWorkload,
	}, "--reload-strategy=annotations")
}
