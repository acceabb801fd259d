package input

import "slices"

// Reason is why Lockstep did something, or why it didn't. The same constant is used in
// the event, the log line, the metric label, the command line and the reference in
// docs/reference/reasons.md.
type Reason string

// Reasons of a single input.
const (
	// InStep: the current version was delivered.
	InStep Reason = "InStep"
	// Changed: another version was last delivered.
	Changed Reason = "Changed"
	// Baseline: the workload is seen for the first time with this input. The running
	// version is recorded as delivered, and pods aren't restarted.
	Baseline Reason = "Baseline"
	// NewBasis: the stored version was measured in another way (another list of keys,
	// another algorithm), so it can't show a change.
	NewBasis Reason = "NewBasis"
	// Arrived: a required source appeared; the pods could not start before it did.
	Arrived Reason = "Arrived"
	// Missing: the source does not exist; a restart would only break the pods.
	Missing Reason = "Missing"
	// Unreadable: sources of this kind, or revisions that may use one, cannot be read
	// here, usually because a permission is missing.
	Unreadable Reason = "Unreadable"
	// DeliveredByRollout: another writer's rollout came after the change and has
	// loaded it.
	DeliveredByRollout Reason = "DeliveredByRollout"
	// DeliveredBefore: the template, or a revision newer than our record, shows this version;
	// the controller was stopped between the patch and the record, or didn't get the answer.
	DeliveredBefore Reason = "DeliveredBefore"
	// Undone: the version was delivered, and a user or a controller reverted the workload
	// to an earlier revision.
	Undone Reason = "Undone"
	// Released: a user accepted the reverted version, without a rollout.
	Released Reason = "Released"
)

// Reasons of the image of a container.
const (
	// Unresolved: no registry has answered which digest the spec stands for.
	Unresolved Reason = "Unresolved"
	// Unpinned: the template doesn't contain a digest of the requested repository and
	// tags.
	Unpinned Reason = "Unpinned"
	// Pinned: the template contains a digest that another writer chose.
	Pinned Reason = "Pinned"
	// Enforced: the template contains a digest that another writer chose, and the workload
	// asks for the newest one all the same.
	Enforced Reason = "Enforced"
	// Accepted: the template doesn't contain the digest, and stays as it is: a user
	// released it, or it was only observed.
	Accepted Reason = "Accepted"
	// Contested: another writer keeps restoring the image.
	Contested Reason = "Contested"
	// Quarantined: the rollout of this digest failed here.
	Quarantined Reason = "Quarantined"
	// PutBack: the rollout of a digest failed, and Lockstep restored the previous one.
	PutBack Reason = "PutBack"
	// RolloutFailed: the rollout of the current version failed, and it stays.
	RolloutFailed Reason = "RolloutFailed"
	// ImagesOff: the workload asks for images, and this controller doesn't follow images.
	ImagesOff Reason = "ImagesOff"
)

// Reasons of a whole workload.
const (
	// Following: the workload begins to be followed.
	Following Reason = "Following"
	// NotFollowed: no setting asks to follow this workload, or something forbids it.
	NotFollowed Reason = "NotFollowed"
	// ReloadOff: the workload asks for ConfigMaps or Secrets, and this controller doesn't
	// follow them.
	ReloadOff Reason = "ReloadOff"
	// KindOff: the workload asks to be followed, and this controller doesn't follow its kind.
	KindOff Reason = "KindOff"
	// InvalidAnnotation: a setting isn't understood; the workload is left alone until it
	// is corrected.
	InvalidAnnotation Reason = "InvalidAnnotation"
	// QuietWindow: a change waits for further changes to end.
	QuietWindow Reason = "QuietWindow"
	// Held: the workload or a changed source carries a hold.
	Held Reason = "Held"
	// Paused: a change waits until the workload is resumed.
	Paused Reason = "Paused"
	// AwaitsTurn: other workloads get the change first.
	AwaitsTurn Reason = "AwaitsTurn"
	// AwaitsFirst: the workload that a user wants to be the first can't begin yet.
	AwaitsFirst Reason = "AwaitsFirst"
	// AwaitsWindow: the maintenance window is closed.
	AwaitsWindow Reason = "AwaitsWindow"
	// AwaitsWorkload: a workload that goes first isn't finished with the change.
	AwaitsWorkload Reason = "AwaitsWorkload"
	// AfterIgnored: a workload that should go first can't be waited for.
	AfterIgnored Reason = "AfterIgnored"
	// Damped: the workload was rolled out, or a source changed, too often.
	Damped Reason = "Damped"
	// VersionStopped: the version failed on a workload that was healthy before.
	VersionStopped Reason = "VersionStopped"
	// Stopped: an operator stopped every automatic change.
	Stopped Reason = "Stopped"
	// AwaitsPods: the pod template contains the change, and pods of an older revision
	// stay until an operator deletes them.
	AwaitsPods Reason = "AwaitsPods"
	// ImmutableReplaced: an immutable source was deleted and created again with other
	// content, and nodes keep their old copy.
	ImmutableReplaced Reason = "ImmutableReplaced"
	// OtherInstallation: another installation of Lockstep rolls out the workload.
	OtherInstallation Reason = "OtherInstallation"
	// NextJob: the next Job of a CronJob reads the new content by itself.
	NextJob Reason = "NextJob"
	// StrategyOff: the workload asks for a strategy that this controller has no
	// permissions for.
	StrategyOff Reason = "StrategyOff"
	// Evicting: pods that are older than the change are evicted one at a time.
	Evicting Reason = "Evicting"
	// Evicted: no pod is older than the change anymore.
	Evicted Reason = "Evicted"
	// Refreshed: the kubelets were notified to refresh the mounted files.
	Refreshed Reason = "Refreshed"
	// NotRefreshable: a changed source is read in a way that a refresh doesn't reach.
	NotRefreshable Reason = "NotRefreshable"
	// TooManySources: the workload asks for more sources than can be recorded and shown
	// for one.
	TooManySources Reason = "TooManySources"
	// RecordTooNew: a newer program wrote the workload's entry, in a format that this one
	// can't read.
	RecordTooNew Reason = "RecordTooNew"
	// RecordFull: the record has no room left for the workload's delivered versions.
	RecordFull Reason = "RecordFull"
	// RecordUnwritable: a part of the record cannot be written.
	RecordUnwritable Reason = "RecordUnwritable"
	// BeyondStrategy: the workload's strategy cannot deliver the change, because it
	// does not change the pod template.
	BeyondStrategy Reason = "BeyondStrategy"
	// NoTemplate: the object has no pod template where its kind should have one.
	NoTemplate Reason = "NoTemplate"
	// TooManyKeys: a source has more keys than Lockstep keeps of one, so it is followed as a whole.
	TooManyKeys Reason = "TooManyKeys"
	// SourceUnknown: a source that an annotation names does not exist.
	SourceUnknown Reason = "SourceUnknown"
	// Reloaded: the pod template was changed to the current versions.
	Reloaded Reason = "Reloaded"
	// WouldReload: observe mode; the workload would have been rolled out.
	WouldReload Reason = "WouldReload"
	// ReloadFailed: the API server refused the change, or other clients always write first.
	ReloadFailed Reason = "ReloadFailed"
)

// Reasons of an object whose name carries its content.
const (
	// Attached: revisions that use the object became its owners.
	Attached Reason = "Attached"
	// AlreadyAttached: every revision that uses the object owns it.
	AlreadyAttached Reason = "AlreadyAttached"
	// WouldAttach: observe mode; owners would have been added.
	WouldAttach Reason = "WouldAttach"
	// AttachFailed: the API server refused the owners.
	AttachFailed Reason = "AttachFailed"
	// OwnedWithoutUse: no revision uses the object, and its owners keep it.
	OwnedWithoutUse Reason = "OwnedWithoutUse"
	// AwaitingRevision: the object is young; its revision may still appear.
	AwaitingRevision Reason = "AwaitingRevision"
	// Unreferenced: no revision uses the object and nothing owns it.
	Unreferenced Reason = "Unreferenced"
	// GenerationNotObserved: the workload's controller has not acted on its
	// newest version yet.
	GenerationNotObserved Reason = "GenerationNotObserved"
	// RevisionMissing: the workload's newest version has no revision yet.
	RevisionMissing Reason = "RevisionMissing"
	// NotReferenced: the workload's newest revision does not name the object.
	NotReferenced Reason = "NotReferenced"
)

// Reasons of a user's commands. They are only in events.
const (
	// ReleasedByHand: a user released the object, and said why.
	ReleasedByHand Reason = "ReleasedByHand"
	// RolledByHand: a user rolled out the workload, and said why.
	RolledByHand Reason = "RolledByHand"
)

// Explanation is one row of the reference of reasons.
type Explanation struct {
	Reason  Reason
	Meaning string
}

// Explanations lists every reason with what it means to a user.
func Explanations() []Explanation {
	return slices.Concat(FollowExplanations(), ImageExplanations(), RevisionExplanations(), CommandExplanations())
}

// MeaningOf is what a reason means to a user, empty for one that this program doesn't know.
func MeaningOf(r Reason) string {
	for _, e := range Explanations() {
		if e.Reason == r {
			return e.Meaning
		}
	}
	return ""
}

// FollowExplanations are the reasons of following inputs.
func FollowExplanations() []Explanation {
	return []Explanation{
		{InStep, "The record lists the current version as delivered. Versions that were only observed count as delivered."},
		{Changed, "The last delivered version of this input isn't the current one."},
		{Baseline, "Lockstep sees this input for the first time. The running version becomes the baseline, and pods aren't restarted."},
		{NewBasis, "The recorded version covers other keys, or was computed with another algorithm. Lockstep takes a new baseline."},
		{Arrived, "A required source was created. The pods couldn't start without it, so they don't need a restart."},
		{Missing, "The source doesn't exist, and new pods couldn't start without it, so Lockstep doesn't roll out the workload. Create the source, or remove it from the pod template."},
		{Unreadable, "Lockstep can't read sources of this kind, or revisions that may use one: a permission is missing, or the API server doesn't answer. `lockstep doctor` lists missing permissions."},
		{DeliveredByRollout, "Another rollout started after the change and loaded it, so Lockstep doesn't start a second one."},
		{DeliveredBefore, "The template or a newer revision shows that Lockstep delivered this version, although that isn't on record: the controller was stopped, or didn't get the answer."},
		{Undone, "The version was delivered and then reverted: new pods start from an earlier revision (after an undo, an abort, or another writer's change to the template). Lockstep delivers it again only if the source changes, a later revision becomes current, or you run `lockstep roll`. `lockstep release` accepts the revert."},
		{Released, "You accepted the reverted version with `lockstep release`, without a rollout."},
		{Following, "Lockstep starts to follow the workload, and its running versions become the baseline. Reported once, with the followed sources."},
		{NotFollowed, "The annotation `lockstep.dev/reload` is missing on the workload and its namespace or excludes the workload with `never`, or the workload doesn't use anything that Lockstep can follow."},
		{InvalidAnnotation, "Lockstep doesn't understand a setting of the workload, and leaves the workload alone until you correct it. Some mistakes only have no effect: unknown keys, values on a namespace or source, `first`, `after` and `window`. An invalid `lockstep.dev/observe` on a namespace counts as `true`."},
		{QuietWindow, "A change waits until its sources have been unchanged for the quiet window."},
		{Held, "The workload, its namespace or a changed source is held with `lockstep.dev/hold`. Run `lockstep release`, or remove the annotation."},
		{Paused, "The workload is paused (`spec.paused`), so a new template wouldn't restart pods. The change waits until you resume the workload. If the resume creates a new revision, that revision delivers the change. Otherwise Lockstep starts one rollout."},
		{AwaitsTurn, "Other workloads get this version first: one workload, then 2, then 4. Each step waits until the previous one is healthy, and a limited number of workloads roll at the same time."},
		{AwaitsFirst, "The healthy workload with `lockstep.dev/first` gets this version first, and can't begin within the maximum delay: it has a long quiet window, or waits for its maintenance window, a damping pause or its turn in another change. The message names it and its reason. Workloads that aren't healthy don't wait for it."},
		{AwaitsWindow, "The maintenance window is closed (`lockstep.dev/window`, or the controller's default). When it opens, Lockstep delivers all changes in one rollout."},
		{AwaitsWorkload, "A workload that `lockstep.dev/after` names hasn't finished rolling out the same change."},
		{AfterIgnored, "`lockstep.dev/after` names a workload that is missing, not followed, held or stopped. Lockstep doesn't wait for it."},
		{Damped, "The workload was rolled out several times in a row, or a source keeps changing. Each further rollout waits longer, up to a limit. A quiet period resets the delay."},
		{VersionStopped, "A workload that was healthy before failed with this version, so Lockstep doesn't deliver it to further workloads. Fix the source or push another image, or deliver the version anyway with `lockstep resume`."},
		{Stopped, "An operator stopped all automatic changes with `lockstep stop` or the ConfigMap `lockstep-stop`. `lockstep resume` allows them again."},
		{AwaitsPods, "The pod template contains the change, but the workload's controller doesn't replace the remaining pods of an older revision: the `updateStrategy` is `OnDelete` or has a partition. Delete these pods, or lower the partition. When the last one is gone, the reason becomes `Reloaded`."},
		{ImmutableReplaced, "An immutable ConfigMap or Secret was deleted and created again with other content. Nodes where a pod still uses the object serve the old content even to new pods, so a rollout might not deliver the new content. Give the new content a new name. Or delete every pod that uses the object, and then run `lockstep roll`."},
		{OtherInstallation, "Another Lockstep installation rolled out the workload. Lockstep treats that like any other writer's rollout. Let only one installation follow the namespace."},
		{NextJob, "The CronJob's next Job reads the new content. Lockstep doesn't change the CronJob and doesn't start a Job."},
		{StrategyOff, "The workload requests `evict` or `refresh`, and the controller runs without these strategies. Enable them in the controller, or use `template`."},
		{Evicting, "Lockstep evicts the pods that are older than the change, one at a time, and waits after each until the workload is available again."},
		{Evicted, "Every pod is newer than the change."},
		{Refreshed, "Lockstep touched the pods, so the kubelets refresh the mounted files at once. Containers aren't restarted."},
		{NotRefreshable, "A changed source isn't mounted, or is read as environment variables or by `subPath`. Only a restart loads it: use `evict` or `template`."},
		{TooManySources, "The workload uses or lists more than Lockstep follows for one workload. The message names the limit, and docs/reference/limits.md lists all limits. Lockstep leaves the workload alone until it uses or lists less. On a revisioned object: a revision in the namespace names so many sources that Lockstep can't tell whether it uses this one. Lockstep doesn't add owners, and Kubernetes deletes an object that has owners when its last owner is deleted."},
		{RecordTooNew, "A newer version of Lockstep wrote the workload's record in a format that this version can't read. Lockstep leaves the record as it is and doesn't roll out the workload. Run the newer version again."},
		{RecordFull, "The namespace's workloads use all the space that one namespace can have in a part of the record, or that part is full. This workload came last, or needs more space than before. Lockstep leaves it alone until there is room: delete workloads that you don't need, or let them follow fewer sources."},
		{RecordUnwritable, "Lockstep can't write one of the record's ConfigMaps (`lockstep-state-NN`). The event on it, `/readyz?verbose` and the log explain why. Lockstep follows the workloads in it from memory, and tries again. If the controller restarts before that succeeds, it forgets the versions that were delivered in the meantime. Other workloads aren't affected."},
		{BeyondStrategy, "The workload uses `evict` or `refresh`, which don't change the pod template, and the change is part of the template (an image). Use `template`."},
		{NoTemplate, "The object doesn't have a pod template at the path that is configured for its kind, or it uses the template of an object that doesn't exist or can't be followed."},
		{TooManyKeys, "The workload uses some keys of a ConfigMap or Secret that has more keys than Lockstep tracks: their names, plus 17 bytes each, take more than 16 KiB. Lockstep can't see which keys changed, so a change to any key rolls out the workload. Split the object to avoid that."},
		{SourceUnknown, "The annotation names a source that doesn't exist. Lockstep follows it as soon as it exists."},
		{Reloaded, "Lockstep changed the pod template to the current versions, which starts one rollout."},
		{ReloadOff, "The workload requests ConfigMaps or Secrets, and the controller runs without following them."},
		{KindOff, "The workload requests to be followed, and the controller runs without its kind. The controller neither reads nor changes such workloads, and keeps their records."},
		{WouldReload, "Observe mode: Lockstep would have started a rollout."},
		{ReloadFailed, "The API server refused the change, or other clients wrote the workload during seven attempts in a row, and Lockstep tries again. If an admission policy denied it, the message starts with the policy's message, and Lockstep tries again every half hour."},
	}
}

// ImageExplanations are the reasons of following images.
func ImageExplanations() []Explanation {
	return []Explanation{
		{Unresolved, "Lockstep doesn't know yet which digest the container's annotation resolves to, or the registry refused the last request, which an event reports. The image stays as it is."},
		{Unpinned, "The pod template doesn't contain a digest of the repository and tags in the container's annotation. Lockstep pins the image."},
		{Pinned, "Another writer, such as a user or a pipeline, chose the image's digest. It stays until the tag has another digest."},
		{Enforced, "Another writer chose the image's digest, and the workload has the annotation `lockstep.dev/enforce: \"true\"`. Lockstep replaces it with the digest that the container's annotation resolves to."},
		{Accepted, "The pod template doesn't contain the newest digest, and stays as it is until the tag has another one: a user accepted the reverted image with `lockstep release`, or the new digest was only observed. A forced `lockstep roll` rolls out the newest digest."},
		{Contested, "Another writer reverted the image for the third time within an hour. Lockstep doesn't pin it again until the annotation or the tag's digest changes, or you run `lockstep release`. The event contains the rule that makes Argo CD ignore the field."},
		{Quarantined, "The rollout of this digest failed for this workload, and Lockstep restored the previous one. Lockstep tries the tag's next digest. `lockstep release` allows this one again."},
		{PutBack, "The rollout of a digest failed, and Lockstep restored the last digest that was healthy for this workload."},
		{RolloutFailed, "The rollout of the current version failed, and the version stays. Lockstep doesn't revert configuration. It restores an image unless configuration was delivered together with it, or it doesn't know a digest that was healthy for this workload. Fix the source, or push another image."},
		{ImagesOff, "The workload requests images, and the controller runs without following them."},
	}
}

// RevisionExplanations are the reasons of keeping configuration with revisions.
func RevisionExplanations() []Explanation {
	return []Explanation{
		{Attached, "The revisions that use the object became its owners. Kubernetes deletes it when its last owner is deleted."},
		{AlreadyAttached, "Every revision that uses the object already owns it."},
		{WouldAttach, "Observe mode: Lockstep would have added owners."},
		{AttachFailed, "The API server refused the owners, and Lockstep tries again."},
		{OwnedWithoutUse, "No revision uses the object. Kubernetes deletes it with its current owners."},
		{AwaitingRevision, "The object is new, and the revision that will use it may still appear."},
		{Unreferenced, "No revision uses the object and nothing owns it, so it stays. Delete it if you don't need it."},
		{GenerationNotObserved, "The workload's own controller hasn't acted on the workload's newest version yet."},
		{RevisionMissing, "The workload's newest version doesn't have a ReplicaSet or ControllerRevision yet."},
		{NotReferenced, "The pod template of the workload's newest revision doesn't name the object."},
	}
}

// CommandExplanations are the reasons of a user's commands.
func CommandExplanations() []Explanation {
	return []Explanation{
		{ReleasedByHand, "A user ran `lockstep release`, or released the object in `lockstep ui`. The event contains the user's reason."},
		{RolledByHand, "A user ran `lockstep roll`, or rolled out the workload in `lockstep ui`. The event contains the user's reason."},
	}
}
