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
	// DeliveredBefore: a revision newer than our record shows this version; the
	// controller was stopped between the patch and the record.
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
	// ReloadFailed: the API server refused the change.
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
		{InStep, "The current version was delivered to the workload."},
		{Changed, "Another version of this input was last delivered to the workload."},
		{Baseline, "Lockstep sees this input for the first time: the running version becomes the baseline, and no pod is restarted."},
		{NewBasis, "The recorded version covers other keys or another algorithm; a new baseline is taken."},
		{Arrived, "A required source appeared; the pods could not have started without it."},
		{Missing, "The source does not exist. Lockstep restarts no pod onto a missing source."},
		{Unreadable, "Sources of this kind, or revisions that may use one, cannot be read here: a permission is missing, or the API server does not answer."},
		{DeliveredByRollout, "Another rollout happened after the change and loaded it; no second rollout is needed."},
		{DeliveredBefore, "A newer revision shows that this version had been delivered before the controller stopped."},
		{Undone, "The version was delivered and then reverted: new pods are made from an earlier revision (undo, abort, another writer's template). It is not pushed again until the source changes, a later revision is current again, `lockstep roll` or `lockstep release`."},
		{Released, "What was reverted is accepted without a rollout, because `lockstep release` said so."},
		{Following, "The workload begins to be followed; whatever it runs becomes the baseline. Reported once, with the sources that it follows."},
		{NotFollowed, "Nothing asks to follow this workload (`lockstep.dev/reload`), `never` refuses it, or it uses nothing that can be followed."},
		{InvalidAnnotation, "A setting of the workload cannot be understood; it is left alone until that is corrected. (An unknown key, a value of a namespace or source, and `first`, `after` and `window` only have no effect; `lockstep.dev/observe` of a namespace then counts as `true`.)"},
		{QuietWindow, "A change waits until its sources have been quiet."},
		{Held, "A person holds the workload or a changed source, by `lockstep.dev/hold`."},
		{Paused, "The workload is paused (`spec.paused`), so that a new template would restart no pod. The change waits for the resume; a revision that is made then is the delivery, otherwise one rollout follows."},
		{AwaitsTurn, "Other workloads get this version first: it goes to one workload, then to 2, then to 4, each step after the previous one is healthy, and to a limited number at the same time."},
		{AwaitsWindow, "The maintenance window (`lockstep.dev/window`, or that of the controller) is closed. All changes are delivered as one rollout when it opens."},
		{AwaitsWorkload, "The workload that `lockstep.dev/after` names isn't finished with the same change."},
		{AfterIgnored, "`lockstep.dev/after` names a workload that is missing, not followed, held or stopped. Lockstep doesn't wait for it."},
		{Damped, "The workload was rolled out again and again, or a source keeps changing. The next rollout waits longer each time, up to a limit; a quiet period ends it."},
		{VersionStopped, "A workload that was healthy before failed with this version, so Lockstep doesn't deliver it to further workloads. Another version of the source ends the stop, and so does `lockstep resume`."},
		{Stopped, "An operator stopped every automatic change with `lockstep stop`, or with the ConfigMap `lockstep-stop`."},
		{AwaitsPods, "The pod template has the change, and pods of an older revision are left, which the workload's controller does not replace: its `updateStrategy` is `OnDelete`, or has a partition. It is delivered when the last of them is gone; the reason is then `Reloaded`."},
		{ImmutableReplaced, "An immutable ConfigMap or Secret was deleted and made again with other content. Nodes on which a pod refers to it go on serving the old content to new pods, so that a rollout would deliver nothing for certain. Give the new content a new name; or delete every pod that refers to it, and then `lockstep roll`."},
		{OtherInstallation, "Another installation of Lockstep rolled out the workload. That counts as another writer's rollout. Let only one of them follow the namespace."},
		{NextJob, "The next Job of the CronJob reads the new content; nothing is patched and no Job is started."},
		{StrategyOff, "The workload asks for `evict` or `refresh`, which this controller was started without."},
		{Evicting, "Pods that are older than the change are evicted one at a time, each after the workload is available again."},
		{Evicted, "Every pod is newer than the change."},
		{Refreshed, "The pods were touched so that the kubelets refresh their mounted files at once; nothing was restarted."},
		{NotRefreshable, "A changed source is not mounted, or is read as environment or by sub-path, which only a restart repeats."},
		{TooManySources, "The workload asks for more than Lockstep follows for one workload: the message names the bound, and docs/guides/reload.md lists all. The workload is left alone until it asks for less. On a revisioned object: a revision of its namespace names so many sources that Lockstep does not know whether it uses this one. No owner is added, and an object with owners is deleted with the last of them."},
		{RecordTooNew, "A newer version of Lockstep wrote the record of this workload in a form that this one cannot read. The record stays untouched and the workload is not rolled out; run the newer version again."},
		{RecordFull, "The workloads of this namespace take all that one namespace can have of a part of the record, or that part is full. This workload came last or asks for more than before, and is left alone until there is room: delete workloads that are not needed, or let them follow less."},
		{RecordUnwritable, "A ConfigMap of the record (`lockstep-state-NN`) cannot be written: the event on it, `/readyz?verbose` and the log say why. Its workloads are followed from memory, and it is tried again; until then a restart of the controller forgets what was delivered to them meanwhile. All others are not affected."},
		{BeyondStrategy, "The workload asks for `evict` or `refresh`, which do not change the pod template, and the change comes with the template (an image). Use `template`."},
		{NoTemplate, "The object has no pod template at the path that was given for its kind, or uses that of an object that is not found or cannot be followed."},
		{TooManyKeys, "The workload uses some keys of a ConfigMap or Secret that has more keys than Lockstep keeps of one: their names, with 17 bytes for each, take more than 16 KiB. Lockstep doesn't see which keys changed, so a change of any key rolls out the workload. Split the object to avoid that."},
		{SourceUnknown, "A source that the annotation names does not exist; it is followed once it does."},
		{Reloaded, "The pod template was changed to the current versions: one rollout."},
		{ReloadOff, "The workload asks for ConfigMaps or Secrets, and this controller was started without following any."},
		{KindOff, "The workload asks to be followed, and this controller was started without its kind: it neither reads nor changes such workloads. What is on record of them stays."},
		{WouldReload, "Observe mode: a rollout would have been started."},
		{ReloadFailed, "The API server refused the change; it is tried again. If an admission policy denied it, the message starts with the policy's, and the change is tried again every half hour."},
	}
}

// ImageExplanations are the reasons of following images.
func ImageExplanations() []Explanation {
	return []Explanation{
		{Unresolved, "No registry has said yet which digest the annotation of the container stands for, or the last answer was a refusal, which an event reports. The image stays as it is."},
		{Unpinned, "The pod template has no digest of the repository and tags that the annotation of the container asks for: the image is pinned."},
		{Pinned, "The image has a digest that another writer chose (a person, a pipeline). It stays until the tag has another digest."},
		{Enforced, "The image has a digest that another writer chose, and the workload has the annotation `lockstep.dev/enforce: \"true\"`: the digest that the annotation of the container stands for replaces it."},
		{Accepted, "The pod template does not have the newest digest, and stays as it is until the tag has another one: a user accepted the reverted image with `lockstep release`, or the new digest was only observed. A forced `lockstep roll` rolls out the newest digest."},
		{Contested, "Another writer has reverted the image for the third time within an hour. Lockstep doesn't pin it again until the annotation or the digest of the tag changes, or `lockstep release`. The event has the rule by which Argo CD ignores the field."},
		{Quarantined, "The rollout of this digest failed here, and Lockstep restored the previous one. The next digest is tried; `lockstep release` allows this one again."},
		{PutBack, "The rollout of a digest failed, and Lockstep restored the digest that was last healthy here."},
		{RolloutFailed, "The rollout of the current version failed, and it stays. Lockstep doesn't revert configuration. It restores an image unless configuration was delivered together with it, or no digest is known that was healthy here."},
		{ImagesOff, "The workload asks for images, and this controller was started without following any."},
	}
}

// RevisionExplanations are the reasons of keeping configuration with revisions.
func RevisionExplanations() []Explanation {
	return []Explanation{
		{Attached, "The revisions that use the object became its owners; it is collected with the last of them."},
		{AlreadyAttached, "Every revision that uses the object owns it already."},
		{WouldAttach, "Observe mode: owners would have been added."},
		{AttachFailed, "The API server refused the owners; it is tried again."},
		{OwnedWithoutUse, "No revision uses the object; it goes when its present owners go."},
		{AwaitingRevision, "The object is young, and the revision that will use it may still appear."},
		{Unreferenced, "No revision uses the object and nothing owns it: it stays until a person or tool deletes it."},
		{GenerationNotObserved, "The workload's controller has not acted on the workload's newest version yet."},
		{RevisionMissing, "The workload's newest version has no ReplicaSet or ControllerRevision yet."},
		{NotReferenced, "The pod template of the workload's newest revision does not name the object."},
	}
}

// CommandExplanations are the reasons of a user's commands.
func CommandExplanations() []Explanation {
	return []Explanation{
		{ReleasedByHand, "A user ran `lockstep release`, or released the object in `lockstep ui`. The event has the user's reason."},
		{RolledByHand, "A user ran `lockstep roll`, or rolled out the workload in `lockstep ui`. The event has the user's reason."},
	}
}
