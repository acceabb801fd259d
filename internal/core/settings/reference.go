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
		{Reload, "workload", acceptedReload, "What the workload follows: everything its template references, the listed sources (referenced or not), or nothing. `search` follows the referenced sources that say `match`. In a list `*` stands for any characters; at most 64 elements have one, and none has more than 8. `!` leaves out what `auto`, `search` and the elements before it would follow; without other elements, the namespace and the controller decide about the rest."},
		{Reload, "namespace", acceptedScope, "Default for the workloads of the namespace that say nothing themselves."},
		{Reload, "ConfigMap, Secret", acceptedSource, "`never`: a change of this source doesn't roll out workloads, except those that list it by name. `auto`: every workload that references it follows it, unless it leaves it out. `match`: the workloads that reference it and say `search` follow it."},
		{Quiet, "workload", acceptedDuration, "How long the workload's sources must be unchanged before it is rolled out, instead of the default of the controller."},
		{Strategy, "workload", acceptedStrategy, "How the workload is rolled out: by its pod template, by evicting its pods one at a time, or without a restart by refreshing mounted files. The last two have to be switched on in the controller."},
		{Hold, "workload", "any text, also none", "No automatic change while it is there; taking it away delivers what has gathered, in one rollout. `kubectl rollout undo` takes it away too, and does not end the hold; the annotation `lockstep.dev/release` does."},
		{Hold, "namespace", "any text, also none", "No automatic change of its workloads while it is there; taking it away delivers what has gathered, in one rollout for each. `lockstep release` on a workload doesn't end it."},
		{Hold, "ConfigMap, Secret", "any text, also none", "Changes of this source are not delivered while it is there. Because any rollout would load the live content, it holds each workload for which this source is due."},
		{Release, "workload", acceptedRelease, "What was reverted (undo, abort) up to that version of the workload is accepted without a rollout, once; an image that is quarantined or contested may be rolled out again. Later versions of the annotation release again, earlier ones do not: an undo may bring an old one back."},
		{Observe, "workload, namespace", acceptedBool, "`true`: decide and report, and write nothing to the workload. Observed versions count as delivered: switching it off doesn't restart pods."},
		{Window, "workload, namespace", acceptedWindow, "When Lockstep may roll out: a cron expression (minute, hour, day, month, weekday) for the beginning, how long it lasts, and a time zone (`UTC` without one). Up to 8 windows are separated by semicolons. Changes wait and are delivered as one rollout when the window opens. The workload's own replaces that of its namespace, which replaces the controller's; `always` is open at any time."},
		{After, "workload", acceptedAfter, "The workload gets a change after these workloads of its namespace have finished the same change. One that is missing, not followed, held or stopped is ignored, with a warning."},
		{First, "workload", acceptedBool, "`true`: of the workloads that use a source, this one gets its changes first, and shows whether they are healthy."},
		{MaxRolling, "namespace", acceptedMaxRolling, "How many workloads of the namespace roll at the same time for one change. It can only lower the controller's limit."},
		{Ramp, "ConfigMap, Secret", rampOff, "`off`: changes of this source reach the workloads without steps, up to the controller's limit at the same time. For a leaked credential, which can't wait."},
		{Resume, "ConfigMap, Secret", acceptedResume, "These versions were stopped because a workload failed with them, and may be delivered to further workloads."},
		{Resume, "workload", acceptedResume, "The same for this workload alone."},
		{Notify, "namespace", acceptedNotify, "Where notifications about the namespace go too: one of the targets that the administrator allows for it."},
		{ImagePrefix + "CONTAINER", "workload", acceptedImage, "The container, or init container, runs the newest tag of the repository that the spec stands for, pinned to its digest: `repository:tag@sha256:…`. It has nothing to do with `lockstep.dev/reload`. Following images has to be switched on in the controller."},
		{Enforce, "workload", acceptedBool, "`true`: a digest that another writer chose for a container with such an annotation is replaced by the newest one. Without it, such a digest stays until the tag has another one. An undo, a hold, a quarantine and a contest still count."},
		{PlatformPrefix + "CONTAINER", "workload", acceptedPlatform, "Pin the image for this platform instead of the index. `index` pins the index where the controller has a default platform."},
		{Revisioned, "ConfigMap, Secret (label)", "true", "Its name carries its content: the revisions that use it become its owners, and Kubernetes removes it with the last of them."},
		{Inputs, "pod template", "written by Lockstep", "The versions that Lockstep delivered with this revision: `configmap/app~3fa9c1d2e4,secret/db~77ab01c9de`, as they were at its last patch. Pods that another tool's rollout started since may have read newer ones: its template keeps the annotation as it was, or has none. The versions delivered to a workload are in the record, which `lockstep roll` checks. Digests of Secrets are keyed."},
		{RolledOutBy, "workload", "written by Lockstep", "The namespace of the installation that last rolled out the workload, by which two installations notice each other."},
		{StateLabel, "ConfigMap (label)", "written by Lockstep", "Marks the ConfigMaps in which Lockstep remembers what it delivered."},
		{Version, "ConfigMap", "written by Lockstep", "The version of the controller that wrote such a ConfigMap last, which `lockstep status` and `lockstep explain` compare with their own."},
	}
}
