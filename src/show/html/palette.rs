//! The colours of areas, the same ones on a light page and on a dark one, in pictures, charts and tables; and what is written on
//! them. Chosen by a search for sixteen colours that are far apart for people with any kind of colour vision, and from both papers;
//! a test keeps them so. A name is next to each colour everywhere, so nothing depends on colour alone.

use crate::map::Area;
use std::fmt::Write;

pub fn colour(area: Area) -> u32 {
    match area {
        Area::JavaHeap => 0x005e9e,
        Area::Gc => 0x72b0ff,
        Area::ClassMetadata => 0x029950,
        Area::CdsArchive => 0x93ffb4,
        Area::JitCode => 0x8a3b00,
        Area::JitWork => 0xffb461,
        Area::Stack => 0xb182b4,
        Area::DirectBuffers => 0xedde36,
        Area::JvmWork => 0xe37704,
        Area::NativeLibrary => 0x501e00,
        Area::Code => 0x5a405d,
        Area::MappedFile => 0xb2b5ad,
        Area::MallocUnknown => 0x740df2,
        Area::MallocFreed => 0x767675,
        Area::Overhead => 0xb5d6fd,
        Area::Unattributed => 0xf72943,
    }
}

/// Variables `--a-AREA`, for drawings; and classes `s-AREA`, of what has the colour and is written on.
pub fn style() -> String {
    let (mut variables, mut classes) = (String::new(), String::new());
    for area in Area::ALL {
        let (name, colour) = (area.name(), colour(*area));
        let _ = write!(variables, "--a-{name}:#{colour:06x};");
        let _ = writeln!(classes, ".s-{name}{{background:var(--a-{name});color:{}}}", on(colour));
    }
    format!(":root{{{variables}}}\n{classes}")
}

/// The swatch before the name of an area.
pub fn swatch(area: Area) -> String {
    format!("<span class=\"swatch s-{}\" aria-hidden=\"true\"></span>", area.name())
}

/// What can be read on it.
fn on(colour: u32) -> &'static str {
    if contrast(luminance(colour), 1.0) >= contrast(luminance(colour), 0.0) { "#fff" } else { "#000" }
}

/// The contrast of two luminances (WCAG 2.2, "contrast ratio").
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
    fn no_two_areas_look_alike_to_any_eye_and_none_like_paper() {
        const PAPERS: [u32; 2] = [0xff_ffff, 0x16_181b];
        let all: Vec<u32> = Area::ALL.iter().map(|area| colour(*area)).chain(PAPERS).collect();
        for (eye, matrix) in &EYES {
            for (index, one) in all.iter().enumerate() {
                for other in &all[index + 1..] {
                    let squares = seen(*one, matrix).into_iter().zip(seen(*other, matrix));
                    let apart = squares.map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt();
                    // 2.3 is what can just be distinguished side by side; samples in a legend are far from each other.
                    assert!(apart > 20.0, "{eye}: {one:06x} and {other:06x}: {apart:.1}");
                }
            }
        }
        let papers = "--paper: light-dark(#ffffff, #16181b)";
        assert!(crate::show::plot::STYLE.contains(papers), "the papers of a page");
    }

    #[test]
    fn what_is_written_on_a_colour_can_be_read() {
        for area in Area::ALL {
            let text = if on(colour(*area)) == "#fff" { 1.0 } else { 0.0 };
            // WCAG 2.2, 1.4.3: 4.5 for text.
            assert!(contrast(luminance(colour(*area)), text) >= 4.5, "{}", area.name());
        }
        assert!(style().contains(".s-stack{background:var(--a-stack);color:#000}"), "{}", style());
    }
}
