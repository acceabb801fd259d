package bundle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// section is a version of the changelog with what changed in it.
type section struct {
	name string // "Unreleased" or a version without v
	date string
	text string
}

// groups are the headings of Keep a Changelog.
func groups() []string {
	return []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
}

// Notes are the release notes of a version: its section of the changelog.
func Notes(changelog, version string) (string, error) {
	sections, err := readChangelog(changelog)
	if err != nil {
		return "", err
	}
	want, err := number(version)
	if err != nil {
		return "", err
	}
	for _, s := range sections {
		if s.name == want {
			return s.text + "\n", nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section for %s: rename \"Unreleased\" to \"[%s] - YYYY-MM-DD\", and begin a new one above it", version, want)
}

// readChangelog parses the sections and refuses a changelog that does not follow Keep a
// Changelog.
func readChangelog(text string) ([]section, error) {
	body, links := splitLinks(text)
	parts := strings.Split("\n"+body, "\n## ")
	var all []section
	for _, part := range parts[1:] {
		s, err := readSection(part)
		if err != nil {
			return nil, err
		}
		if s.name != unreleased && links[s.name] == "" {
			return nil, fmt.Errorf("CHANGELOG.md: version %s has no link: want a line \"[%s]: https://…\" at the end", s.name, s.name)
		}
		all = append(all, s)
	}
	return all, checkOrder(all)
}

const unreleased = "Unreleased"

// splitLinks removes the link definitions, and returns them by their names.
func splitLinks(text string) (body string, links map[string]string) {
	line := regexp.MustCompile(`(?m)^\[([^\]]+)\]: (\S+)\n?`)
	links = map[string]string{}
	for _, found := range line.FindAllStringSubmatch(text, -1) {
		links[found[1]] = found[2]
	}
	return line.ReplaceAllString(text, ""), links
}

// readSection parses a section without the marks of its heading.
func readSection(text string) (section, error) {
	heading, body, _ := strings.Cut(text, "\n")
	found := regexp.MustCompile(`^\[([^\]]+)\](?: - (\S+))?$`).FindStringSubmatch(heading)
	if found == nil {
		return section{}, fmt.Errorf("CHANGELOG.md: heading %q: want \"[Unreleased]\" or \"[0.1.0] - 2006-01-02\"", heading)
	}
	s := section{name: found[1], date: found[2], text: strings.TrimSpace(body)}
	for _, group := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(body, -1) {
		if !slices.Contains(groups(), group[1]) {
			return section{}, fmt.Errorf("CHANGELOG.md: %s has the group %q: want one of %s", s.name, group[1], strings.Join(groups(), ", "))
		}
	}
	if s.name == unreleased {
		return s, nil
	}
	if _, err := semver.StrictNewVersion(s.name); err != nil {
		return section{}, fmt.Errorf("CHANGELOG.md: %q is no version: want one such as 0.1.0", s.name)
	}
	if _, err := time.Parse(time.DateOnly, s.date); err != nil {
		return section{}, fmt.Errorf("CHANGELOG.md: %s has the date %q: want one such as 2006-01-02", s.name, s.date)
	}
	if s.text == "" {
		return section{}, fmt.Errorf("CHANGELOG.md: %s says nothing", s.name)
	}
	return s, nil
}

// checkOrder: unreleased changes come first, and newer versions before older ones.
func checkOrder(all []section) error {
	if len(all) == 0 || all[0].name != unreleased {
		return fmt.Errorf("CHANGELOG.md: want the section \"## [%s]\" first, also when it is empty", unreleased)
	}
	for i := 2; i < len(all); i++ {
		newer, older := all[i-1], all[i]
		if older.name == unreleased || !semver.MustParse(older.name).LessThan(semver.MustParse(newer.name)) {
			return fmt.Errorf("CHANGELOG.md: %s comes after %s: want newer versions first, and each once", older.name, newer.name)
		}
		if older.date > newer.date {
			return fmt.Errorf("CHANGELOG.md: %s is of %s and older than %s of %s", newer.name, newer.date, older.name, older.date)
		}
	}
	return nil
}
