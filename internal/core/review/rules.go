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
		{UnknownKey, Error, "An annotation or label begins like one of Lockstep's, or almost, and there is no such key. Lockstep ignores it."},
		{MisplacedKey, Error, "A key of Lockstep's is where it has no meaning: on the pod template, on another kind of object, or as a label instead of an annotation."},
		{WrittenByLockstep, Warning, "The file has a key that Lockstep writes. Leave it out: it tells what was given to a workload."},
		{InvalidValue, Error, "The value of an annotation cannot be understood. Lockstep leaves such a workload alone; on a ConfigMap, a Secret or a namespace the annotation has no effect, but for `lockstep.dev/observe`, which then counts as `true`. `lockstep.dev/window`, `after`, `first` and `resume` have no effect then on a workload either, and it is followed."},
		{NoCounterpart, Warning, "An annotation of another tool, whose annotations Lockstep was asked to read, has no counterpart. The message says what Lockstep does instead."},
		{InvalidImage, Error, "An annotation about an image cannot be understood: the repository, the spec of the tags or the platform."},
		{UnknownContainer, Error, "An annotation about an image names a container that the pod template does not have."},
		{TooManySources, Error, "`lockstep.dev/reload` lists more than Lockstep reads. It leaves the workload alone."},
		{Contradiction, Warning, "Two settings exclude each other, or one has no effect beside the other; or workloads wait for each other with `lockstep.dev/after`."},
		{NothingToFollow, Warning, "The workload asks to be followed, and its pod template uses no ConfigMap and no Secret."},
		{NoTemplate, Error, "The object has no pod template where its kind has one, so that Lockstep cannot follow it."},
		{MissingReference, Warning, "A workload needs a ConfigMap or Secret that does not exist, or `lockstep.dev/after` names a workload that does not. For `lockstep lint` that means in none of the files: a warning, because the cluster may have it, or an error if the files are said to be complete."},
		{WrongType, Error, "The value of an annotation or label is no string, such as `true` or `1` without quotes, or a field of a workload has a value of another type. The API server refuses the object."},
		{DuplicateKey, Error, "A key is there twice in one place of the file. Only one of them counts, and most programs do not say which."},
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
