package review

// Rule is what an object violates; one constant for each mistake, in the output of
// programs, in the documentation and in tests.
type Rule string

// The rules.
const (
	UnknownKey        Rule = "UnknownKey"
	MisplacedKey      Rule = "MisplacedKey"
	WrittenByLockstep Rule = "WrittenByLockstep"
	InvalidValue      Rule = "InvalidValue"
	NoCounterpart     Rule = "NoCounterpart"
	InvalidImage      Rule = "InvalidImage"
	UnknownContainer  Rule = "UnknownContainer"
	TooManySources    Rule = "TooManySources"
	Contradiction     Rule = "Contradiction"
	NothingToFollow   Rule = "NothingToFollow"
	NoTemplate        Rule = "NoTemplate"
	MissingReference  Rule = "MissingReference"
	WrongType         Rule = "WrongType"
	DuplicateKey      Rule = "DuplicateKey"
)

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	// Error is a setting that doesn't have the intended effect.
	Error Severity = "error"
	// Warning is a setting that may be intended, or correct elsewhere.
	Warning Severity = "warning"
)

// Explanation is one row of the table of rules.
type Explanation struct {
	Rule     Rule
	Severity Severity
	Meaning  string
}

// Explanations lists every rule with what it finds.
func Explanations() []Explanation {
	return []Explanation{
		{UnknownKey, Error, "An annotation or label looks like one of Lockstep's, but Lockstep doesn't know the key and ignores it."},
		{MisplacedKey, Error, "A Lockstep key is in a place where it has no effect: on the pod template, on another kind of object, or as a label instead of an annotation."},
		{WrittenByLockstep, Warning, "The file contains a key that Lockstep writes itself, to note the versions delivered to a workload. Remove it."},
		{InvalidValue, Error, "Lockstep doesn't understand the value of an annotation. It leaves such a workload alone. On a ConfigMap, a Secret or a namespace the annotation has no effect, except `lockstep.dev/observe`, which then counts as `true`. An invalid `lockstep.dev/window`, `after`, `first` or `resume` on a workload has no effect either, and Lockstep follows the workload."},
		{NoCounterpart, Warning, "Lockstep is configured to read another tool's annotations, and one of them has no counterpart. The message explains what Lockstep does instead."},
		{InvalidImage, Error, "Lockstep doesn't understand an image annotation: the repository, the tag spec or the platform."},
		{UnknownContainer, Error, "An image annotation names a container that isn't in the pod template."},
		{TooManySources, Error, "`lockstep.dev/reload` lists more than Lockstep reads. Lockstep leaves the workload alone."},
		{Contradiction, Warning, "Two settings exclude each other, one setting makes another one ineffective, or workloads wait for each other with `lockstep.dev/after`."},
		{NothingToFollow, Warning, "The workload requests to be followed, but its pod template doesn't use a ConfigMap or Secret."},
		{NoTemplate, Error, "The object doesn't have a pod template at the path that is configured for its kind, so Lockstep can't follow it."},
		{MissingReference, Warning, "A workload needs a ConfigMap or Secret that doesn't exist, or `lockstep.dev/after` names a workload that doesn't exist. `lockstep lint` looks in the files only: it warns, because the object may exist in the cluster, or reports an error if you declare the files complete."},
		{WrongType, Error, "The value of an annotation or label isn't a string, such as `true` or `1` without quotes, or a workload field has a value of the wrong type. The API server refuses the object."},
		{DuplicateKey, Error, "A key appears twice in the same map. Only one of them counts, and most programs don't report which."},
	}
}

// severityOf is the default severity of a rule.
func severityOf(rule Rule) Severity {
	for _, e := range Explanations() {
		if e.Rule == rule {
			return e.Severity
		}
	}
	return Error
}
