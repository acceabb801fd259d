package kubernetesreloader

import (
	"math"
	"regexp"
	"strings"
)

// arguments are the values of each flag, by its kebab-case name.
type arguments map[string][]string

// last is the effective value. The original's parser turned a repeated flag into a list, which
// no text flag could use; here the last one wins.
func (a arguments) last(name string) string {
	values := a[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// isTrue treats a flag without a value as true.
func (a arguments) isTrue(name string) bool {
	values, set := a[name]
	return set && (len(values) == 0 || values[len(values)-1] != "false")
}

// split groups a command line by flags. A flag takes at most one value; an array takes all
// values up to the next flag; a switch takes only "true" and "false". The original ignored
// leftover arguments, and everything after "--".
func split(args []string) arguments {
	given := arguments{}
	for i := 0; i < len(args) && args[i] != "--"; {
		flag, values := readFlag(args[i])
		i++
		if flag == "" {
			continue
		}
		for room := capacity(flag, len(values)); room > 0 && i < len(args) && takes(flag, args[i]); room-- {
			values = append(values, args[i])
			i++
		}
		if negated, ok := strings.CutPrefix(flag, "no-"); ok && len(values) == 0 {
			given.negate(negated)
			continue
		}
		given[flag] = append(given[flag], values...)
	}
	return given
}

// negate handles --no-flag: a switch is off, any other flag counts as not set.
func (a arguments) negate(flag string) {
	delete(a, flag)
	if isSwitch(flag) {
		a[flag] = []string{"false"}
	}
}

// readFlag splits "--name=value"; the flag is empty if the argument isn't one. Of several
// letters after a single dash, only the last can have a value.
func readFlag(arg string) (flag string, values []string) {
	name, long := strings.CutPrefix(arg, "--")
	if !long {
		letters, short := strings.CutPrefix(arg, "-")
		if !short || letters == "" || isNegative(arg) {
			return "", nil
		}
		name = letters
	}
	name, value, hasValue := strings.Cut(name, "=")
	if hasValue {
		values = []string{value}
	}
	if !long && name != "" {
		name = name[len(name)-1:]
	}
	return canonical(name), values
}

// capacity is how many more values a flag can take.
func capacity(flag string, taken int) int {
	switch flag {
	case "ignored-config-resource-types", "resource-type":
		return math.MaxInt
	}
	return 1 - taken
}

// takes reports whether the argument is a value of the preceding flag.
func takes(flag, arg string) bool {
	if isSwitch(flag) || strings.HasPrefix(flag, "no-") {
		return arg == "true" || arg == "false"
	}
	return !strings.HasPrefix(arg, "-") || isNegative(arg)
}

func isSwitch(flag string) bool {
	switch flag {
	case "help", "version", "insecure-skip-tls-verify":
		return true
	}
	return false
}

// isNegative reports whether the argument is a negative number, which is a value although it
// begins like a flag.
func isNegative(arg string) bool {
	return regexp.MustCompile(`^-[0-9]+(\.[0-9]+)?`).MatchString(arg)
}

// canonical is the kebab-case name of a flag, with aliases resolved.
func canonical(flag string) string {
	aliases := map[string]string{
		"s": "server", "cacert": "certificate-authority", "cert": "client-certificate", "key": "client-key",
	}
	var b strings.Builder
	for i, r := range flag {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	if long, ok := aliases[b.String()]; ok {
		return long
	}
	return b.String()
}
