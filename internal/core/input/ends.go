package input

import "cmp"

// Ends describes what ends the situation of a workload that isn't in step, empty for a
// reason that means in step or that ends by itself.
func Ends(r Reason) string {
	switch r {
	case QuietWindow:
		return "a quiet window without changes, or the end of the maximum delay"
	case Held:
		return "the end of the hold (lockstep release)"
	case Paused:
		return "a resume, for example with kubectl rollout resume"
	case AwaitsPods:
		return "the deletion of the last pod from an older revision"
	case ImmutableReplaced:
		return "the new content under a new name, or lockstep roll after the last pod that uses the object is gone"
	case Missing:
		return "the source to be created, or removed from the pod template"
	case Undone:
		return "another version of the input, a later revision, lockstep roll or lockstep release"
	case Contested:
		return "another digest of the tag, a changed annotation, or lockstep release"
	case Unresolved:
		return "an answer from the registry, or a changed annotation"
	case RolloutFailed:
		return "another version, or a rollout that succeeds"
	case Quarantined:
		return "the tag's next digest, or lockstep release"
	case Evicting:
		return "the replacement of the last pod that is older than the change"
	case GenerationNotObserved:
		return "its own controller to act on its newest version"
	case InvalidAnnotation:
		return "a corrected annotation"
	case TooManySources:
		return "fewer sources in the template or the annotation"
	case NoTemplate:
		return "a pod template at the path that is configured for the kind"
	case RecordFull:
		return "room in the record: fewer workloads in the namespace, or fewer sources"
	case BeyondStrategy:
		return "lockstep.dev/strategy: template"
	case NotFollowed:
		return "the annotation lockstep.dev/reload: auto on the workload or its namespace, and a source that the workload uses or lists"
	case ReloadFailed:
		return "an attempt that the API server accepts, or lockstep roll"
	default:
		return cmp.Or(endsInTurn(r), endsByAnother(r))
	}
}

// endsInTurn is for changes that reach workloads one after the other.
func endsInTurn(r Reason) string {
	switch r {
	case AwaitsTurn:
		return "its turn, after the workloads before it are healthy"
	case AwaitsFirst:
		return "the rollout of the workload with lockstep.dev/first"
	case AwaitsWindow:
		return "the maintenance window to open"
	case AwaitsWorkload:
		return "the end of the earlier workload's rollout"
	case Damped:
		return "the end of the delay, or a period without changes"
	case VersionStopped:
		return "another version of the source, or lockstep resume"
	case Stopped:
		return "lockstep resume for the cluster or the namespace"
	default:
		return ""
	}
}

// endsByAnother is for situations that only another controller ends: one of another version, or
// with other flags.
func endsByAnother(r Reason) string {
	switch r {
	case RecordTooNew:
		return "a controller of the newer version"
	case StrategyOff:
		return "a controller with pod strategies, or lockstep.dev/strategy: template"
	case ReloadOff:
		return "a controller that follows ConfigMaps and Secrets"
	case ImagesOff:
		return "a controller that follows images"
	case KindOff:
		return "a controller that follows this kind of workload"
	default:
		return ""
	}
}
