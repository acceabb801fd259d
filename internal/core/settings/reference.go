package settings

// Reference is one row of the reference of annotations and labels.
type Reference struct {
	Key string
	// On names the objects that carry it.
	On string
	// Accepted are the values.
	Accepted string
	Meaning  string
}

// References lists every key that users write or see, in the order in which they meet
// them.
func References() []Reference {
	return []Reference{
		{Reload, "workload", acceptedReload, "Selects the sources that the workload follows: every source that its pod template references (`auto`), the listed sources even if it doesn't reference them, or none (`never`). `search` follows the referenced sources whose own annotation is `match`. In a list, `*` stands for any characters. At most 64 elements may contain `*`, each at most 8 times. `!` excludes sources that `auto`, `search` or the elements before it select. If a list contains only exclusions, the namespace or the controller decides about the other sources."},
		{Reload, "namespace", acceptedScope, "Default for workloads in the namespace that don't have the annotation."},
		{Reload, "ConfigMap, Secret", acceptedSource, "`never`: a change to this source rolls out only the workloads that list it by name. `auto`: every workload that references the source follows it, unless the workload excludes it. `match`: workloads that reference the source and use `search` follow it."},
		{Quiet, "workload", acceptedDuration, "How long the workload's sources must be unchanged before Lockstep rolls it out. Replaces the controller's default."},
		{Strategy, "workload", acceptedStrategy, "How Lockstep delivers a change: by changing the pod template, by evicting the pods one at a time, or without a restart by refreshing mounted files. `evict` and `refresh` must be enabled in the controller."},
		{Hold, "workload", "any text, or empty", "Lockstep doesn't change the workload while it has this annotation. When you remove it, Lockstep delivers the pending changes in one rollout. `kubectl rollout undo` may remove the annotation too, but that doesn't end the hold: `lockstep release` does."},
		{Hold, "namespace", "any text, or empty", "Lockstep doesn't change the namespace's workloads while it has this annotation. When you remove it, Lockstep delivers the pending changes, in one rollout for each workload. `lockstep release` on a workload doesn't end it."},
		{Hold, "ConfigMap, Secret", "any text, or empty", "Lockstep doesn't deliver changes to this source while it has this annotation. Because any rollout would load the current content, Lockstep holds every workload that still needs the change."},
		{Release, "workload", acceptedRelease, "Accepts, once and without a rollout, every change that was reverted (undo, abort) up to that version of the workload. A quarantined or contested image may be rolled out again. A later resource version releases again. An earlier one doesn't, because an undo may restore an old annotation."},
		{Observe, "workload, namespace", acceptedBool, "`true`: Lockstep decides and reports, but doesn't write to the workload. Observed versions count as delivered, so turning observe mode off doesn't restart pods."},
		{Window, "workload, namespace", acceptedWindow, "When Lockstep may start a rollout: a cron expression (minute, hour, day, month, weekday) for the start, a duration, and a time zone (default `UTC`). Separate up to 8 windows with semicolons. Changes wait, and Lockstep delivers them in one rollout when the window opens. The workload's window replaces the namespace's, which replaces the controller's. `always` is open at any time."},
		{After, "workload", acceptedAfter, "Lockstep delivers a change to the workload after these workloads have finished rolling out the same change. It ignores a workload that is missing, not followed, held or stopped, with a warning."},
		{First, "workload", acceptedBool, "`true`: of the workloads that use a source, this one gets changes first and shows whether they are healthy. While it is healthy and can't begin, the other healthy workloads [wait for it](safe-rollouts.md#steps)."},
		{MaxRolling, "namespace", acceptedMaxRolling, "How many workloads in the namespace may roll at the same time for one change. It can only lower the controller's limit."},
		{Ramp, "ConfigMap, Secret", rampOff, "`off`: changes to this source reach the workloads without steps, up to the controller's limit at the same time. For urgent changes, such as replacing a leaked credential."},
		{Resume, "ConfigMap, Secret", acceptedResume, "Allows Lockstep to deliver these versions to further workloads although a workload failed with them."},
		{Resume, "workload", acceptedResume, "The same, for this workload only."},
		{Notify, "namespace", acceptedNotify, "An additional target for notifications about the namespace."},
		{ImagePrefix + "CONTAINER", "workload", acceptedImage, "The container or init container runs the newest tag that matches the spec, pinned to its digest: `repository:tag@sha256:…`. It doesn't depend on `lockstep.dev/reload`. Following images must be enabled in the controller."},
		{Enforce, "workload", acceptedBool, "`true`: Lockstep replaces a digest that another writer chose for a container with an image annotation. By default, such a digest stays until the tag has another one. Undos, holds, quarantines and contests still apply."},
		{PlatformPrefix + "CONTAINER", "workload", acceptedPlatform, "Pins the image for this platform instead of the index. `index` pins the index even if the controller has a default platform."},
		{Revisioned, "ConfigMap, Secret (label)", "true", "The object's name identifies its content. The revisions that use it become its owners, and Kubernetes deletes it when its last owner is deleted."},
		{Inputs, "pod template", "written by Lockstep", "The versions that Lockstep delivered with this revision, as of its last patch: `configmap/app~3fa9c1d2e4,secret/db~77ab01c9de`. Pods from another tool's later rollout may have loaded newer versions, because that tool keeps the annotation as it is or removes it. The delivered versions are in Lockstep's record, which `lockstep roll` checks. Secret digests are keyed."},
		{RolledOutBy, "workload", "written by Lockstep", "The namespace of the installation that last rolled out the workload. It lets two installations detect each other."},
		{StateLabel, "ConfigMap (label)", "written by Lockstep", "Marks the ConfigMaps in which Lockstep records delivered versions."},
		{Version, "ConfigMap", "written by Lockstep", "The version of the controller that last wrote such a ConfigMap. `lockstep status` and `lockstep explain` compare it with their own version."},
	}
}
