package input

import "cmp"

// Ends describes what ends the situation of a workload that isn't in step, empty for a
// reason that means in step or that ends by itself.
func Ends(r Reason) string {
	switch r {
	case QuietWindow:
		return "no further change for the quiet window, or the end of the maximum delay"
	case Held:
		return "lockstep release, or the removal of the annotation lockstep.dev/hold"
	case Paused:
		return "a resume of the workload, such as kubectl rollout resume"
	case AwaitsPods:
		return "the deletion of the last pod of an older revision"
	case ImmutableReplaced:
		return "the new content under a new name, or lockstep roll once no pod refers to the old"
	case Missing:
		return "the creation of the source, or a template without it"
	case Undone:
		return "a change of the input, a later revision, lockstep roll or lockstep release"
	case Contested:
		return "another digest of the tag, another annotation, or lockstep release"
	case Unresolved:
		return "an answer of the registry, or another annotation"
	case RolloutFailed:
		return "another version, or a rollout that succeeds"
	case Quarantined:
		return "the next digest of the tag, or lockstep release"
	case Evicting:
		return "the replacement of the last pod that is older than the change"
	case GenerationNotObserved:
		return "the workload's own controller, as soon as it has acted"
	case InvalidAnnotation:
		return "the correction of the annotation"
	case TooManySources:
		return "fewer sources in the template or the annotation"
	case NoTemplate:
		return "a pod template where the kind has it"
	case RecordFull:
		return "room in the record: fewer workloads in the namespace, or fewer sources"
	case BeyondStrategy:
		return "lockstep.dev/strategy: template"
	case NotFollowed:
		return "the annotation lockstep.dev/reload: auto on the workload or its namespace, and a source that the workload uses or lists"
	case ReloadFailed:
		return "the next attempt that the API server accepts, or lockstep roll"
	default:
		return cmp.Or(endsInTurn(r), endsByAnother(r))
	}
}

// endsInTurn is for changes that reach workloads one after the other.
func endsInTurn(r Reason) string {
	switch r {
	case AwaitsTurn:
		return "its turn: the workloads before it are healthy"
	case AwaitsWindow:
		return "the opening of the maintenance window"
	case AwaitsWorkload:
		return "the end of the rollout that goes first"
	case Damped:
		return "the end of the pause, or a quiet source"
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
		return "the newer version of the controller"
	case StrategyOff:
		return "a controller with the strategies on pods, or lockstep.dev/strategy: template"
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
