//! The colours of areas, for a light page and for a dark one, defined once; and what is written on them. Chosen by a search for
//! sixteen colours that are far apart for people with any kind of colour vision; a test keeps them so. A name stands next to each
//! colour everywhere, so nothing depends on colour alone.

use crate::map::Area;
use std::fmt::Write;

/// On white, and on black.
pub fn colours(area: Area) -> (u32, u32) {
    match area {
        Area::JavaHeap => (0x0072b2, 0x4aa3df),
        Area::Gc => (0x8db3ff, 0x4b769a),
        Area::ClassMetadata => (0x27ab67, 0x7ff9af),
        Area::CdsArchive => (0xa2fdc5, 0x1c4927),
        Area::JitCode => (0x974300, 0xd68100),
        Area::JitWork => (0xffb764, 0x794900),
        Area::Stack => (0xab7fa6, 0xcbb8dd),
        Area::DirectBuffers => (0xf0e442, 0xf0e442),
        Area::JvmWork => (0xde7600, 0xf2b967),
        Area::NativeLibrary => (0x59260b, 0xae8546),
        Area::Code => (0x6b4e5e, 0x8ba49b),
        Area::MappedFile => (0xb1b4ab, 0x583c55),
        Area::MallocUnknown => (0x7512f3, 0xab12fc),
        Area::MallocFreed => (0x1f1f1f, 0xf4f4f4),
        Area::Overhead => (0xd1e7ff, 0x5d4ba2),
        Area::Unattributed => (0xff3b4d, 0xda496a),
    }
}

/// Variables `--a-AREA` and, of what is written on it, `--t-AREA`; classes `a-AREA` of drawings and `s-AREA` of samples.
pub fn style() -> String {
    let variables = |colour: fn((u32, u32)) -> u32| {
        Area::ALL.iter().fold(String::new(), |mut text, area| {
            let (name, colour) = (area.name(), colour(colours(*area)));
            let _ = write!(text, "--a-{name}:#{colour:06x};--t-{name}:{};", on(colour));
            text
        })
    };
    let (light, dark) = (variables(|(light, _)| light), variables(|(_, dark)| dark));
    let mut style = format!(
        ":root{{{light}}}\n:root[data-theme=\"dark\"]{{{dark}}}\n\
         @media (prefers-color-scheme: dark){{:root:not([data-theme=\"light\"]){{{dark}}}}}\n\
         @media print{{:root:root{{{light}}}}}\n"
    );
    for area in Area::ALL {
        let name = area.name();
        let _ = writeln!(
            style,
            ".a-{name}{{fill:var(--a-{name})}}.a-{name} text{{fill:var(--t-{name})}}.s-{name}{{background:var(--a-{name})}}"
        );
    }
    style
}

/// What can be read on it.
fn on(colour: u32) -> &'static str {
    if contrast(luminance(colour), 1.0) >= contrast(luminance(colour), 0.0) { "#fff" } else { "#000" }
}

/// Of two luminances (WCAG 2.2, "contrast ratio").
fn contrast(one: f64, other: f64) -> f64 {
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn luminance(colour: u32) -> f64 {
    let [red, green, blue] = linear(colour);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// sRGB without its gamma (IEC 61966-2-1).
fn linear(colour: u32) -> [f64; 3] {
    [16, 8, 0].map(|shift| {
        let value = f64::from(colour >> shift & 0xff) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What those see to whom a kind of cones is missing, in linear RGB (G. Machado, M. Oliveira, L. Fernandes, "A
    /// Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, severity 1.0); and what all others see.
    const EYES: [(&str, [[f64; 3]; 3]); 4] = [
        ("all kinds of cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "no long",
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
        ),
        (
            "no middle",
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
        ),
        (
            "no short",
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
        ),
    ];

    /// CIE 1976 L*a*b*, D65.
    fn lab([red, green, blue]: [f64; 3]) -> [f64; 3] {
        let x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047;
        let y = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        let z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883;
        let root = |value: f64| if value > 0.008856 { value.cbrt() } else { 7.787 * value + 16.0 / 116.0 };
        [116.0 * root(y) - 16.0, 500.0 * (root(x) - root(y)), 200.0 * (root(y) - root(z))]
    }

    fn seen(colour: u32, eye: &[[f64; 3]; 3]) -> [f64; 3] {
        let light = linear(colour);
        lab(eye.map(|row| {
            row.iter().zip(light).map(|(share, light)| share * light).sum::<f64>().clamp(0.0, 1.0)
        }))
    }

    #[test]
    fn no_two_areas_look_alike_to_any_eye() {
        for (eye, matrix) in &EYES {
            for (index, one) in Area::ALL.iter().enumerate() {
                for other in &Area::ALL[index + 1..] {
                    let (light, dark) =
                        ([colours(*one).0, colours(*other).0], [colours(*one).1, colours(*other).1]);
                    for [one_colour, other_colour] in [light, dark] {
                        let (one_seen, other_seen) = (seen(one_colour, matrix), seen(other_colour, matrix));
                        let squares =
                            one_seen.iter().zip(other_seen).map(|(one, other)| (one - other).powi(2));
                        let apart = squares.sum::<f64>().sqrt();
                        // 2.3 is what can just be distinguished side by side; samples in a legend lie far from each other.
                        assert!(apart > 15.0, "{eye}: {} and {}: {apart:.1}", one.name(), other.name());
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_written_on_a_colour_can_be_read() {
        for area in Area::ALL {
            let (light, dark) = colours(*area);
            for colour in [light, dark] {
                let text = if on(colour) == "#fff" { 1.0 } else { 0.0 };
                // WCAG 2.2, 1.4.3: 4.5 for text.
                assert!(contrast(luminance(colour), text) >= 4.5, "{}", area.name());
            }
        }
        assert!(
            style().contains("--t-malloc_freed:#fff")
                && style().contains(".s-stack{background:var(--a-stack)}")
        );
    }
}
